"""`memory jobs schedule`: list schedules; run, pause or resume one."""

from __future__ import annotations

import argparse
from typing import Any

from ..runtime.errors import UsageError
from ..schedules.table import SCHEDULES
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.scheduler import Scheduler, ScheduleStatus, local_timezone
from .context import Context
from .output import add_json, local_time, note, print_json, print_table

EPILOG = """example:
  memory jobs schedule                  every schedule, when it ran last (-: not yet) and runs next
  memory jobs schedule run discovery    now, out of turn
  memory jobs schedule pause discovery
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory jobs schedule`."""
    parser.add_argument("action", nargs="?", default="list", choices=("list", "run", "pause", "resume"))
    parser.add_argument("name", nargs="?", help="of the schedule (run, pause, resume)")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List the schedules, or act on one. Times are local."""
    if args.action == "list" and args.name is not None:
        raise UsageError(f"memory jobs schedule list takes no {args.name!r}: it shows all of them")
    _ = context.kept_state
    if away := context.vault_away:
        note(f"memory: {away}")
    zone = local_timezone()
    with open_ledger(context.settings) as ledger:
        scheduler = Scheduler(ledger, kinds={schedule.kind for schedule in SCHEDULES}, tz=zone)
        if args.action != "list":
            return _act(args, scheduler)
        rows = scheduler.status()
    if args.json:
        print_json([_as_json(row) for row in rows])
        return 0
    print_table(
        ("schedule", "cron", "last", "next", "what it does"),
        [
            (
                row.schedule.name,
                row.schedule.cron,
                local_time(row.last_run),
                "paused" if row.paused else local_time(row.next_slot),
                row.schedule.doc,
            )
            for row in rows
        ],
    )
    return 0


def _act(args: argparse.Namespace, scheduler: Scheduler) -> int:
    if args.name is None:
        raise UsageError(f"which schedule? memory jobs schedule {args.action} NAME   (memory jobs schedule shows them)")
    result: dict[str, Any] = {"name": args.name}
    if args.action == "run":
        result["job"] = scheduler.run_now(args.name)
        said = f"{args.name}: queued as job {result['job']}"
    else:
        result["paused"] = args.action == "pause"
        scheduler.pause(args.name, paused=result["paused"])
        said = f"{args.name}: " + ("paused until you resume it" if result["paused"] else "resumed")
    if args.json:
        print_json(result)
    else:
        print(said)
    return 0


def _as_json(row: ScheduleStatus) -> dict[str, Any]:
    return {
        "name": row.schedule.name,
        "cron": row.schedule.cron,
        "kind": row.schedule.kind,
        "last": row.last_run.isoformat() if row.last_run else None,
        "next": None if row.paused else row.next_slot.isoformat(),
        "paused": row.paused,
        "jitter_seconds": row.schedule.jitter_seconds,
        "doc": row.schedule.doc,
    }
