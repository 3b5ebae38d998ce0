"""`memory worker`: runs the jobs."""

from __future__ import annotations

import argparse
import logging

from ..tasks.queue.worklog import log_to
from ..tasks.wiring import build_worker
from ..vault.errors import UsageError
from ..vault.priority import step_back
from .arguments import is_given
from .context import Context
from .output import add_json, counted, print_json

EPILOG = """example:
  memory worker                 run until it is told to stop (SIGTERM drains)
  memory worker --until-idle    run all that is due, then exit
"""

DEFAULT_TIMEOUT_SECONDS = 600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory worker`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--until-idle",
        action="store_true",
        help="run all that is due, sessions in their quiet period included, and exit",
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
            raise UsageError(f"{option} belongs to `memory worker --until-idle`")
    settings = context.settings
    log_to(context.state.log_file, getattr(logging, settings.memory.log_level.upper()))
    if not args.until_idle:  # Nobody waits for it.
        step_back()
    worker = build_worker(settings, watch=not args.until_idle)
    if not args.until_idle:
        return worker.run_forever()
    timeout = DEFAULT_TIMEOUT_SECONDS if args.timeout is None else args.timeout
    report = worker.run_until_idle(timeout_seconds=timeout, include_delayed_seconds=settings.session.quiet_seconds)
    if args.json:
        print_json(report.__dict__)
    elif report.elsewhere:
        waiting = counted(report.delayed, "job waits for its", "jobs wait for their")
        print(f"the worker that is running did it ({waiting} time)")
    else:
        names = ("done", "retried", "dead", "dead_shared", "postponed", "delayed")
        counts = {name.replace("_shared", " in the shared queue"): getattr(report, name) for name in names}
        print(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to do")
    return 1 if report.dead or report.timed_out else 0
