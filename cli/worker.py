"""`memory service worker`: runs the jobs."""

from __future__ import annotations

import argparse
import logging
from dataclasses import asdict
from datetime import UTC, datetime

from ..runtime.errors import UsageError
from ..runtime.priority import lower_priority
from ..runtime.settings import Settings
from ..services.pausing import told_of_pause
from ..services.settings_in_force import SettingsInForce
from ..tasks.jobs.wiring import build_worker
from ..tasks.queue.records import DueLater
from ..tasks.queue.scheduler import local_timezone
from ..tasks.queue.worker import RunReport
from ..tasks.queue.worklog import log_to
from .arguments import is_given
from .context import Context
from .headway import headway_line, later_line
from .output import add_json, counted, note, print_json
from .status_line import StatusLine

EPILOG = """example:
  memory service worker                 run until it is told to stop (SIGTERM drains)
  memory service worker --until-idle    run all that is due, then exit
"""

DEFAULT_TIMEOUT_SECONDS = 600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory service worker`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--until-idle",
        action="store_true",
        help="run all that is due, sessions in their quiet period included; say what is due later, and exit",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help=f"with --until-idle: the longest wait (default {DEFAULT_TIMEOUT_SECONDS:g})",
    )
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the worker; with --until-idle, exit code 1 when a job of its own died or the time was not enough."""
    for option in ("--timeout", "--json"):
        if is_given(args, option) and not args.until_idle:
            raise UsageError(f"{option} belongs to `memory service worker --until-idle`")
    settings = context.settings
    if not args.until_idle:
        _ = context.state
        lower_priority()  # Nobody waits for it.
        return _run_forever(settings)
    if paused := told_of_pause(settings):
        note(f"memory: {paused}")
    timeout = DEFAULT_TIMEOUT_SECONDS if args.timeout is None else args.timeout
    with StatusLine() as line:
        log_to(context.state.log_file, _level(settings), line.note)
        report = build_worker(settings, watch=False).run_until_idle(
            timeout_seconds=timeout,
            include_delayed_seconds=settings.session.quiet_seconds,
            on_progress=(lambda headway: line.show(headway_line(headway))) if line.shown else None,
        )
    if args.json:
        print_json(asdict(report) | {"later": [_as_json(each) for each in report.later]})
    else:
        _print(report, paused=told_of_pause(settings) is not None)
    if report.timed_out:  # Or it was told to leave.
        note("memory: it ended before all was done; `memory service worker --until-idle` goes on with the rest")
    return 1 if report.dead or report.timed_out else 0


def _run_forever(settings: Settings) -> int:
    """One worker after another: each ends when the settings it was made with hold no more."""
    in_force = SettingsInForce(settings)
    while True:
        settings = in_force.take()
        log_to(settings.state.log_file, _level(settings))
        worker = build_worker(settings, watch=True, is_outdated=in_force.have_changed)
        status = worker.run_forever()
        if not worker.is_outdated:
            return status


def _level(settings: Settings) -> int:
    return int(getattr(logging, settings.memory.log_level.upper()))


def _print(report: RunReport, *, paused: bool) -> None:
    if paused and not (report.done or report.retried or report.dead or report.postponed):
        print("nothing was started")
        return
    if report.elsewhere:
        waiting = counted(report.delayed, "job waits for its", "jobs wait for their")
        print(f"the worker that is running did it ({waiting} time)")
    else:
        names = ("done", "retried", "dead", "dead_shared", "postponed", "delayed")
        counts = {name.replace("_shared", " in the shared queue"): getattr(report, name) for name in names}
        print(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to do")
    if line := later_line(report.later, datetime.now(local_timezone()), running=report.elsewhere):
        print(line)


def _as_json(later: DueLater) -> dict[str, object]:
    first_at = datetime.fromtimestamp(later.first_at, UTC).isoformat(timespec="seconds")
    return {"kind": later.kind, "jobs": later.jobs, "first_at": first_at}
