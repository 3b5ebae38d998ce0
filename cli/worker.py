"""`memory service worker`: run the jobs."""

from __future__ import annotations

import argparse
import logging
from dataclasses import asdict, replace

from ..runtime.errors import SettingsError, UsageError
from ..runtime.priority import lower_priority
from ..runtime.settings import Settings, load_settings, seems_switched_off
from ..runtime.snapshot import config_stamp
from ..services.pausing import pause_notice
from ..tasks.jobs.wiring import build_worker
from ..tasks.queue.worker import RunReport
from ..tasks.queue.worklog import log_to
from .arguments import is_given
from .context import Context
from .output import add_json, counted, note, print_json
from .progress import StatusLine

EPILOG = """example:
  memory service worker --until-idle
"""

DEFAULT_TIMEOUT_SECONDS = 600.0


log = logging.getLogger(__name__)


class SettingsInForce:
    """The settings of a running worker. They are compared with the file, so that withdrawn consent takes effect."""

    def __init__(self, settings: Settings) -> None:
        self._in_force = self._newest = settings
        self._stamp = ""
        """Stamp of the file that was read last; '' before the first check."""

    def have_changed(self) -> bool:
        """Whether the file now has other settings. An unreadable file is logged once and counts as unchanged."""
        env = self._in_force.environment
        if (stamp := config_stamp(env)) != self._stamp:
            self._stamp = stamp
            try:
                newest = load_settings(env)
                _ = newest.state  # Raises for an empty file, as an editor makes while saving.
                self._newest = newest
            except SettingsError as error:
                log.warning("%s; until that is mended the worker goes by the settings from before", error)
                if seems_switched_off(self._in_force.config_file):
                    self._newest = replace(self._newest, memory=replace(self._newest.memory, enabled=False))
        return self._newest != self._in_force

    def take(self) -> Settings:
        """Adopt and return the newest readable settings."""
        if self._stamp:  # Not at the start, for which they were just read; what ran since may have taken long to end.
            self.have_changed()
        self._in_force = self._newest
        return self._in_force


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory service worker`."""
    parser.add_argument(
        "--until-idle",
        action="store_true",
        help="run all that is due, also sessions in their quiet period, and exit",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help=f"with --until-idle: the longest wait (default {DEFAULT_TIMEOUT_SECONDS:g})",
    )
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the worker; with --until-idle return 1 if a job died or time ran out."""
    for option in ("--timeout", "--json"):
        if is_given(args, option) and not args.until_idle:
            raise UsageError(f"{option} belongs to `memory service worker --until-idle`")
    settings = context.settings
    if not args.until_idle:
        _ = context.state
        return run_forever(settings)
    if paused := pause_notice(settings):
        note(f"memory: {paused}")
    timeout = DEFAULT_TIMEOUT_SECONDS if args.timeout is None else args.timeout
    with StatusLine() as line:
        log_to(context.state.log_file, settings.memory.log_level, line.note)
        report = build_worker(settings, watch=False).run_until_idle(
            timeout_seconds=timeout,
            include_delayed_seconds=settings.session.quiet_seconds,
            on_left=(lambda left: line.show(f"working; {counted(left, 'job')} left")) if line.shown else None,
        )
    if args.json:
        print_json(asdict(report))
    else:
        _print(report, paused=pause_notice(settings) is not None)
    if report.timed_out:  # Or a signal ended it.
        note("memory: it ended before all was done; `memory service worker --until-idle` does the rest")
    return 1 if report.dead or report.timed_out else 0


def run_forever(settings: Settings) -> int:
    """Run workers one after another until a signal; each ends when the settings change. Return the exit code."""
    lower_priority()  # It works in the background.
    in_force = SettingsInForce(settings)
    while True:
        settings = in_force.take()
        log_to(settings.state.log_file, settings.memory.log_level)
        worker = build_worker(settings, watch=True, is_outdated=in_force.have_changed)
        status = worker.run_forever()
        if not worker.is_outdated:
            return status


def _print(report: RunReport, *, paused: bool) -> None:
    if paused and not (report.done or report.retried or report.dead or report.postponed):
        print("nothing was started")
        return
    if report.elsewhere:
        waiting = counted(report.delayed, "job waits for its", "jobs wait for their")
        print(f"the worker that was already running did it ({waiting} time)")
    else:
        names = ("done", "retried", "dead", "postponed", "delayed")
        told = ", ".join(f"{count} {name}" for name in names if (count := getattr(report, name)))
        print((told or "nothing to do") + (" (`memory jobs list`)" if report.delayed else ""))
