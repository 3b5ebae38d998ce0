"""`memory jobs`: what the ledger holds; retry, cancel."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from ..tasks.ledger import STATES, Job, Ledger
from ..vault.errors import UsageError
from .context import Context
from .output import add_json, print_json, print_table

EPILOG = """example:
  memory jobs list --state dead
  memory jobs show 42 --json
  memory jobs retry 42
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory jobs`."""
    parser.epilog = EPILOG
    parser.add_argument("action", nargs="?", default="list", choices=("list", "show", "retry", "cancel"))
    parser.add_argument("id", nargs="?", type=int, help="the job's number (show, retry, cancel)")
    parser.add_argument("--state", choices=STATES)
    parser.add_argument("--kind")
    parser.add_argument("--limit", type=int, default=50)
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List jobs newest first, or act on one."""
    ledger = Ledger(context.state.queue_db)
    if args.limit < 1:
        raise UsageError("--limit must be 1 or more")
    if args.action == "list":
        jobs = ledger.list([args.state] if args.state else STATES, kind=args.kind, most=args.limit)
        if args.json:
            print_json([_as_json(job) for job in jobs])
        elif jobs:
            print_table(
                ("id", "kind", "state", "attempt", "run at", "error"),
                [(j.id, j.kind, j.state, j.attempt, _time(j.run_at), (j.error or "")[:80]) for j in jobs],
            )
        else:
            print("no jobs match")
        return 0
    if args.id is None:
        raise UsageError(f"which job? memory jobs {args.action} ID   (memory jobs list shows them)")
    match args.action:
        case "retry":
            job = ledger.retry(args.id)
        case "cancel":
            job = ledger.cancel(args.id)
        case _:
            job = ledger.get(args.id)
    if args.json:
        print_json(_as_json(job))
    else:
        for key, value in _as_json(job).items():
            print(f"{key:12} {value}")
    return 0


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _as_json(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "args": job.args,
        "unique_key": job.unique_key,
        "state": job.state,
        "attempt": job.attempt,
        "priority": job.priority,
        "run_at": _time(job.run_at),
        "created_at": _time(job.created_at),
        "started_at": _time(job.started_at),
        "finished_at": _time(job.finished_at),
        "error": job.error,
        "history": [dict(step) for step in job.history],
    }
