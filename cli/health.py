"""`memory health`: how things stand, in figures."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..index.client import RecallClient, ServiceRefused, ServiceUnavailable
from ..index.receipts import marks_of, read_marks
from ..tasks.costs import costs_by_week
from ..tasks.enqueue import open_ledger
from ..tasks.health import (
    HOOK_DAYS,
    TRIAL_SESSION,
    count_entries,
    hook_times,
    last_reflection,
    log_lines,
    oldest_waiting,
    resident_megabytes,
    warnings_of,
    week_before,
    why_unheard,
)
from ..tasks.indexing import open_index, vault_store
from ..tasks.spending import spending_report
from ..vault.errors import MemoryVaultError
from ..vault.lock import lock_holder
from .context import Context
from .output import add_json, print_json, print_table

EPILOG = """example:
  memory health          what needs you comes first
  memory health --costs  tokens and time by week and project
  memory health --json   for a status line or a cron job
"""


MOST_REFLECTIONS = 20
"""Among so many is the last one that was no trial of the hooks."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory health`."""
    parser.epilog = EPILOG
    parser.add_argument("--costs", action="store_true", help="what sessions cost, by week and project")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the figures; what cannot be reached is said among the warnings and the rest is told all the same."""
    if args.costs:
        return _costs(args, context)
    report = examine(context, time.time())
    if args.json:
        print_json(report)
    else:
        _print(report)
    return 0


def examine(context: Context, now: float) -> dict[str, Any]:
    """Everything as one JSON object."""
    settings = context.settings
    state = settings.state
    faults: list[str] = []
    unheard: list[str] = []
    counts = queue = index = None
    done_at: list[float] = []
    try:
        _ = context.vault
        counts = count_entries(vault_store(settings).walk())
    except (MemoryVaultError, OSError) as error:
        faults.append(str(error))
    try:
        with open_ledger(settings) as ledger:
            backlog = ledger.backlog()
            dead = sum(states.get("dead", 0) for states in ledger.counts().values())
            queue = {"running": backlog.running, "due": backlog.due, "delayed": backlog.delayed, "dead": dead}
            done = [
                job
                for job in ledger.list(["done"], kind="reflect.session", most=MOST_REFLECTIONS)
                if not str(job.args.get("session") if isinstance(job.args, dict) else "").startswith(TRIAL_SESSION)
            ][:1]
            done_at = [
                job.finished_at
                for job in (*done, *ledger.list(["done"], kind="reflect.corpus", most=1))
                if job.finished_at is not None
            ]
            unheard = [why for job in done if (why := why_unheard(job.history)) is not None]
    except MemoryVaultError as error:
        faults.append(str(error))
    try:
        with open_index(settings) as store:
            index = {**asdict(store.stats()), "model": store.in_force()}
    except MemoryVaultError as error:
        faults.append(str(error))
    spending = None
    try:
        spending = spending_report(state.state_db, now)
    except MemoryVaultError as error:
        faults.append(str(error))
    hooks = hook_times(log_lines(Path(state.log_file), week_before(now)), week_before(now))
    last = last_reflection(state.harness, done_at)
    marks = marks_of(read_marks(Path(state.log) / "marks.jsonl"))
    warnings = warnings_of(counts, last, oldest_waiting(state.harness), hooks, now)
    if queue is not None and queue["dead"]:
        warnings.append(f"{queue['dead']} jobs are dead: `memory jobs list --state dead` says why")
    return {
        "warnings": [*faults, *warnings, *unheard],
        "entries": asdict(counts) if counts is not None else None,
        "last_reflection": datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds") if last else None,
        "queue": queue,
        "index": index,
        "hooks": [asdict(times) for times in hooks],
        "miner": settings.reflection.miner,
        "spending": spending,
        "marked": {"useful": sum(marks.values()), "noise": len(marks) - sum(marks.values())},
        "processes": _processes(state.worker_lock, state.recall_socket),
    }


def _print_spending(miner: str, spending: Mapping[str, Any] | None) -> None:
    """Of each purpose, today and this week; nothing while nothing was ever spent or refused."""
    if miner != "local":
        print(f"miner            {miner}")
    for name, title in (("today", "spent today"), ("week", "spent in 7 days")):
        for one in (spending or {}).get(name, []):
            unit = one["unit"]
            refused = f", {one['refused']} refused ({one['refusals']} times)" if one["refusals"] else ""
            saved = f", {one['saved']} saved" if one["saved"] else ""
            print(f"{title:16} {one['purpose']}: {one['spent']} {unit}{saved}{refused}")


def _processes(worker_lock: str, recall_socket: str) -> dict[str, dict[str, Any] | None]:
    pids: dict[str, int | None] = {"worker": lock_holder(worker_lock), "recall": None}
    try:
        with RecallClient(recall_socket) as client:
            pids["recall"] = int(client.ping()["pid"])
    except (ServiceUnavailable, ServiceRefused):
        pids["recall"] = None
    return {
        name: None if pid is None else {"pid": pid, "megabytes": _rounded(resident_megabytes(pid))}
        for name, pid in pids.items()
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _costs(args: argparse.Namespace, context: Context) -> int:
    rows = costs_by_week(context.store)
    if args.json:
        print_json([asdict(row) for row in rows])
    elif rows:
        print_table(
            ("week of", "project", "sessions", "input", "output", "cache write", "cache read", "active"),
            [
                (
                    row.week,
                    row.project or "-",
                    row.sessions,
                    *(f"{tokens:,}" for tokens in (row.input_tokens, row.output_tokens)),
                    *(f"{tokens:,}" for tokens in (row.cache_write_tokens, row.cache_read_tokens)),
                    f"{row.active_seconds / 3600:.1f} h",
                )
                for row in rows
            ],
        )
    else:
        print("no session's cost is noted yet: the worker does it once an hour")
    return 0


def _print(report: Mapping[str, Any]) -> None:
    for line in report["warnings"]:
        print(f"! {line}")
    entries, queue, index = report["entries"], report["queue"], report["index"]
    if entries is not None:
        groups = ", ".join(f"{group} {count}" for group, count in entries["groups"].items()) or "none yet"
        print(f"entries          {groups}")
        print(
            f"waiting          {entries['review']} in review, {entries['inbox']} in the inbox, {entries['ideas']} ideas"
        )
    print(f"last reflection  {report['last_reflection'] or 'never'}")
    if queue is not None:
        print(f"queue            {', '.join(f'{count} {name}' for name, count in queue.items())}")
    if index is not None:
        pending = f", {index['pending']} without a vector" if index["pending"] else ""
        print(
            f"index            {index['entries']} entries, {index['chunks']} passages{pending}, "
            f"{index['size_bytes'] / 1e6:.1f} MB, model {index['model'] or 'none'}"
        )
    for name, process in report["processes"].items():
        if process is None:
            print(f"{name:16} does not run")
        else:
            memory = "" if process["megabytes"] is None else f", {process['megabytes']:.0f} MB"
            print(f"{name:16} process {process['pid']}{memory}")
    _print_spending(report["miner"], report["spending"])
    if any(report["marked"].values()):
        print(f"marked           {report['marked']['useful']} useful, {report['marked']['noise']} noise")
    print(f"\nhooks of the last {HOOK_DAYS} days, in ms")
    if not report["hooks"]:
        print("  none was run")
        return
    print_table(
        ("event", "count", "p50", "p95", "p99", "budget", "over", "degraded"),
        [
            (
                times["event"],
                times["count"],
                *(f"{times[name]:.0f}" for name in ("p50_ms", "p95_ms", "p99_ms", "budget_ms")),
                times["over_budget"],
                times["degraded"],
            )
            for times in report["hooks"]
        ],
    )
