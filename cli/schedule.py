"""`memory jobs schedule`: list schedules; run one."""

from __future__ import annotations

import argparse
from typing import Any

from ..runtime.errors import UsageError
from ..schedules.table import SCHEDULES
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.ledger import Ledger
from ..tasks.queue.scheduler import Scheduler, ScheduleStatus
from .context import Context
from .output import add_json, local_time, note, print_result, print_rows

EPILOG = """example:
  memory jobs schedule                  every schedule, when it ran last (-: not yet) and runs next
  memory jobs schedule run discovery    now, out of turn

`memory jobs pause KIND` holds back the jobs of a kind, those of its schedule too.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory jobs schedule`."""
    parser.add_argument("action", nargs="?", default="list", choices=("list", "run"))
    parser.add_argument("name", nargs="?", help="of the schedule to run")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List the schedules, or run one. Times are local."""
    if args.action == "list" and args.name is not None:
        raise UsageError(f"memory jobs schedule list takes no {args.name!r}: it shows all of them")
    _ = context.kept_state
    if away := context.vault_away:
        note(f"memory: {away}")
    with open_ledger(context.settings) as ledger:
        scheduler = Scheduler(ledger, kinds={schedule.kind for schedule in SCHEDULES})
        if args.action == "run":
            return _run_now(args, scheduler, ledger)
        rows = scheduler.status()
    shown = [
        (
            row.schedule.name,
            row.schedule.cron,
            local_time(row.last_run),
            "paused" if row.paused else local_time(row.next_slot),
            row.schedule.doc,
        )
        for row in rows
    ]
    return print_rows(args, [*map(_as_json, rows)], ("schedule", "cron", "last", "next", "what it does"), shown)


def _run_now(args: argparse.Namespace, scheduler: Scheduler, ledger: Ledger) -> int:
    if args.name is None:
        raise UsageError("which schedule? memory jobs schedule run NAME   (memory jobs schedule shows them)")
    job = scheduler.run_now(args.name)
    print_result(args, {"name": args.name, "job": job}, f"{args.name}: queued as job {job}")
    if (kind := ledger.get(job).kind) in ledger.paused():
        note(f"memory: held: `memory jobs resume {kind}`")
    return 0


def _as_json(row: ScheduleStatus) -> dict[str, Any]:
    return {
        "name": row.schedule.name,
        "cron": row.schedule.cron,
        "kind": row.schedule.kind,
        "last": row.last_run.isoformat() if row.last_run else None,
        "next": None if row.paused else row.next_slot.isoformat(),
        "paused": row.paused,
        "doc": row.schedule.doc,
    }
