"""`memory jobs …`: list, retry and cancel jobs; show, pause and resume kinds."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from ..runtime.errors import UsageError
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.kinds import POLICIES
from ..tasks.queue.ledger import Ledger
from ..tasks.queue.records import STATES, Job, State, job_number
from .arguments import at_least_one
from .context import Context
from .output import (
    COLUMN_CHARACTERS,
    add_json,
    counted,
    cut,
    local_time,
    note,
    print_json,
    print_result,
    print_rows,
    print_table,
)

EPILOGS = {
    "list": """example:
  memory jobs list --state dead
""",
    "show": "example:\n  memory jobs show 42\n",
    "retry": """example:
  memory jobs retry 42
  memory jobs retry all --kind reflect.corpus
""",
    "cancel": "example:\n  memory jobs cancel 42\n",
    "kinds": "example:\n  memory jobs kinds\n",
    "pause": "example:\n  memory jobs pause reflect.corpus\n",
    "resume": "example:\n  memory jobs resume reflect.corpus\n",
}

ALL = "all"
DEFAULT_LIMIT = 50
MOST = 1_000_000
LIMITS = (
    "kind", "priority", "concurrency", "deadline_seconds", "attempts", "backoff_base_seconds", "backoff_cap_seconds",
    "in_child",
)  # fmt: skip
UNFINISHED: tuple[State, ...] = ("queued", "running", "dead")
TIMES = ("run_at", "created_at", "started_at", "finished_at")


def configure(parser: argparse.ArgumentParser, action: str) -> None:
    """Arguments of `memory jobs …`."""
    kinds = sorted(POLICIES)
    if action in ("pause", "resume"):
        parser.add_argument("kind", metavar="KIND", choices=kinds, help="as `memory jobs kinds` shows it")
    elif action == "retry":
        parser.add_argument("job", metavar="JOB", help="a job's number, or `all` for every dead one")
        parser.add_argument("--kind", metavar="KIND", choices=kinds, help="of `all`: only jobs of this kind")
    elif action in ("show", "cancel"):
        parser.add_argument("job", metavar="JOB", help="a job's number")
    elif action == "list":
        parser.add_argument("--state", choices=STATES, help="only jobs in it")
        parser.add_argument("--kind", metavar="KIND", choices=kinds, help="only jobs of this kind")
        parser.add_argument("--all", action="store_true", help="also those that are done or cancelled")
        parser.add_argument("--limit", type=at_least_one, help=f"how many at most (default {DEFAULT_LIMIT})")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """List jobs newest first, or act on one job or kind."""
    if args.action == "retry" and args.job != ALL and args.kind:
        raise UsageError("--kind belongs to `memory jobs retry all`")
    _ = context.kept_state
    if away := context.vault_away:
        note(f"memory: {away}")
    with open_ledger(context.settings) as ledger:
        match args.action:
            case "list":
                _list(args, ledger, min(args.limit or DEFAULT_LIMIT, MOST))
            case "kinds":
                _kinds(args, ledger)
            case "pause" | "resume":
                _pause(args, ledger)
            case "retry" if args.job == ALL:
                _retry_all(args, ledger)
            case action:
                act = {"show": ledger.get, "retry": ledger.retry, "cancel": ledger.cancel}[action]
                _print(args, act(job_number(args.job)))
    return 0


def _list(args: argparse.Namespace, ledger: Ledger, most: int) -> None:
    usual = UNFINISHED if not (args.all or args.json or args.kind) else STATES
    found = ledger.list_jobs([args.state] if args.state else usual, kind=args.kind, most=most + 1)
    jobs = found[:most]
    rows = [
        (j.id, j.kind, j.state, j.attempt, local_time(j.run_at), _object(j), cut(j.error or "", COLUMN_CHARACTERS))
        for j in jobs
    ]
    none = "no jobs match" if args.state or usual is STATES else "no job waits, runs or is dead: see --all"
    header = ("id", "kind", "state", "attempt", "run at", "of", "error")
    print_rows(args, [_as_json(job) for job in jobs], header, rows, none)
    if len(found) > most and not args.json:
        note(f"memory: these are the newest {most}; --limit N shows more")


def _object(job: Job) -> str:
    """What the job works on: its session, else the idea, model … in its key; '' if there is one job of the kind."""
    if isinstance(job.args, dict) and isinstance(session := job.args.get("session"), str):
        return cut(session, COLUMN_CHARACTERS)
    kind, _, what = (job.unique_key or "").partition(":")
    return cut(what, COLUMN_CHARACTERS) if kind == job.kind else ""


def _print(args: argparse.Namespace, job: Job) -> None:
    if args.json:
        print_json(_as_json(job))
        return
    told = {**_as_json(job), **{name: local_time(getattr(job, name)) for name in TIMES}}
    for key, value in told.items():
        if key != "history":
            print(f"{key:12} {'-' if value is None else value}")
    if job.history:
        print()
        print_table(("attempt", "started", "seconds", "ended as", "why, or what it did"), map(_step, job.history))


def _step(step: Any) -> tuple[object, ...]:
    started, ended = step.get("started"), step.get("ended")
    seconds = f"{ended - started:.2f}" if started is not None and ended is not None else "-"
    did = step.get("error") or step.get("result") or ""
    return step.get("attempt"), local_time(started), seconds, step.get("outcome"), did


def _retry_all(args: argparse.Namespace, ledger: Ledger) -> None:
    again, refused = ledger.retry_dead(args.kind)
    for line in refused:
        note(f"memory: {line}")
    waiting = f", {counted(len(refused), 'is', 'are')} waiting already" if refused else ""
    told = f"{counted(len(again), 'job is', 'jobs are')} queued again{waiting}"
    print_result(args, [_as_json(job) for job in again], told)


def _kinds(args: argparse.Namespace, ledger: Ledger) -> None:
    paused = ledger.paused()
    value = [{**{name: getattr(p, name) for name in LIMITS}, "paused": p.kind in paused} for p in POLICIES.values()]
    rows = [
        (
            p.kind,
            p.priority,
            p.concurrency,
            f"{p.deadline_seconds:g}",
            p.attempts,
            f"{p.backoff_base_seconds:g} … {p.backoff_cap_seconds:g}",
            "yes" if p.in_child else "no, its result is dropped",
            "paused" if p.kind in paused else "",
        )
        for p in sorted(POLICIES.values(), key=lambda p: (-p.priority, p.kind))
    ]
    header = ("kind", "priority", "at once", "deadline s", "attempts", "backoff s", "ends at its deadline", "")
    print_rows(args, value, header, rows)


def _pause(args: argparse.Namespace, ledger: Ledger) -> None:
    pauses = args.action == "pause"
    (ledger.pause if pauses else ledger.resume)(args.kind)
    told = "no job of this kind starts until you resume it" if pauses else "resumed"
    print_result(args, {"kind": args.kind, "paused": pauses}, f"{args.kind}: {told}")


def _utc(seconds: float | None) -> str:
    return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _as_json(job: Job) -> dict[str, Any]:
    plain = ("id", "kind", "args", "unique_key", "state", "attempt", "priority")
    return {
        **{name: getattr(job, name) for name in plain},
        **{name: _utc(getattr(job, name)) for name in TIMES},
        "error": job.error,
        "history": [dict(step) for step in job.history],
    }
