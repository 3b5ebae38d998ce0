"""`memory health`: what needs the user, and figures."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from itertools import groupby

from ..console.times import size, when_iso
from ..hooks.wiring import is_wired
from ..runtime.background import what_starts_a_worker
from ..runtime.settings import Settings
from ..services.health_report import HealthReport, IndexFigures, health_report
from ..services.hook_log import HOOK_DAYS
from ..services.pausing import why_nothing_starts
from ..services.spending import SpendingReport
from ..services.waiting_sessions import describe_sessions
from .context import Context
from .output import counted, in_line, print_json, print_table, with_home

EPILOG = """example:
  memory health --json
"""


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the figures; what cannot be read is a warning and does not stop the rest."""
    report = health_report(context.settings, time.time(), is_wired)
    if args.json:
        print_json(asdict(report))
    else:
        _print(report, context.settings)
    return 0


def _print_spending(miner: str, spending: SpendingReport | None) -> None:
    """Print what each purpose spent today and this week; nothing if nothing was ever spent."""
    if miner != "local":
        print(f"miner            {miner}")
    if spending is None:
        return
    for title, sums in (("spent today", spending.today), ("spent in 7 days", spending.week)):
        for purpose, of_purpose in groupby(sums, lambda one: one.purpose):
            print(f"{title:16} {purpose}: {', '.join(f'{one.spent} {one.unit}' for one in of_purpose)}")


def _model(index: IndexFigures) -> str:
    if index.model_problem:
        return f"none: {index.model_problem}"
    if index.model:
        return index.model
    had = (
        f"{index.embedded} of {index.embedded + (index.pending or 0)} passages are" if index.embedded else "nothing is"
    )
    return f"{index.model_to_use} (not used yet: {had} embedded)"


def _print(report: HealthReport, settings: Settings) -> None:
    for line in report.warnings:
        print(f"! {in_line(with_home(line))}")
    todo = report.waiting.with_commands() if report.waiting is not None else []
    if todo:
        print(f"for you: {'; '.join(todo)}\n")
    elif not report.warnings:
        print("nothing needs you\n")
    if (entries := report.entries) is not None:
        groups = ", ".join(f"{group} {count}" for group, count in entries.groups.items()) or "none yet"
        aside = ", ".join(f"{count:,} {status}" for status, count in entries.set_aside.items())
        print(f"entries          {groups}" + (f"; not in use: {aside}" if aside else ""))
    if report.waiting is not None:
        print(f"waiting          {report.waiting.describe()}")
    print(f"last reflection  {when_iso(report.last_reflection) if report.last_reflection else 'never'}")
    if report.unconfirmed:
        print(
            f"unconfirmed      {counted(report.unconfirmed, 'message')} that no record says you typed: proposed at most"
        )
    if report.queue is not None:
        print(f"queue            {', '.join(f'{count} {name}' for name, count in asdict(report.queue).items())}")
    if report.sessions is not None and (told := describe_sessions(report.sessions, settings, is_wired)):
        print(f"sessions         {told}")
    if (index := report.index) is not None:
        pending = f", {index.pending} without a vector" if index.pending else ""
        print(
            f"index            {counted(index.entries, 'note')} (entries, what waits, ideas, lists), "
            f"{counted(index.chunks, 'passage')}{pending}, "
            f"{size(index.size_bytes)}, model {_model(index)}"
        )
    for name, process in (("worker", report.processes.worker), ("recall", report.processes.recall)):
        if process is None:
            says_how = name == "worker" and not why_nothing_starts(settings)
            print(f"{name:16} does not run{f': {what_starts_a_worker(settings, is_wired)}' if says_how else ''}")
        else:
            hung = "" if process.answers else ", does not answer: `memory doctor`"
            print(f"{name:16} process {process.pid}{hung}")
    _print_spending(report.miner, report.spending)
    print(f"\nhooks of the last {HOOK_DAYS} days, in ms (of tool calls: where one said something)")
    if not report.hooks:
        print("  none was run")
        return
    print_table(
        ("event", "count", "p50", "p95", "p99", "budget", "over", "degraded"),
        [
            (
                times.event,
                times.count,
                *(f"{ms:.0f}" for ms in (times.p50_ms, times.p95_ms, times.p99_ms, times.budget_ms)),
                times.over_budget,
                times.degraded,
            )
            for times in report.hooks
        ],
    )
