"""`memory service up`: run the programs of the Procfile together, until one of them ends or the user ends both."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from ..runtime.errors import WorkerRunning
from ..runtime.process_lock import lock_holder
from ..runtime.settings import child_environment
from ..tasks.queue.times import worker_times
from .context import Context
from .output import note
from .processes import stop_background
from .terminal_safety import OutputRefused

EPILOG = """example:
  memory service up             worker and recall service in one terminal; Ctrl-C stops both
"""

PROGRAMS = {"worker": "service worker", "recall": "service serve --stay"}
"""As in the Procfile. The end of one ends the other, so the recall service must not exit when idle."""
KILL_MARGIN_SECONDS = 10.0
"""Added to the worker's own limit, within which it stops its jobs and returns them to the queue."""
POLL_SECONDS = 0.2
LAST_LINES_SECONDS = 1.0
"""How long the last lines of a program that has ended are waited for."""


def configure(parser: argparse.ArgumentParser) -> None:
    """`memory service up` has no arguments."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Run both until one ends or a signal comes, then stop the other. Return 1 if one ended with an error."""
    del args
    if (holder := lock_holder(context.state.worker_lock)) is not None:
        # Checked before anything is stopped: if it is another `service up`, stopping its recall service would end it.
        raise WorkerRunning(holder)
    if stop_background(context.state, "recall"):
        note("memory: stopped the recall service that a session had started; this one takes over")
    signals = _collect_signals()
    environment = child_environment(context.settings)
    programs: list[subprocess.Popen[str]] = []
    relays: list[threading.Thread] = []
    try:
        for name, words in PROGRAMS.items():
            programs.append(_start(words, environment))
            relays.append(threading.Thread(target=_relay, args=(name, programs[-1]), daemon=True))
            relays[-1].start()
        while not signals and all(program.poll() is None for program in programs):
            time.sleep(POLL_SECONDS)
        codes = {name: program.poll() for name, program in zip(PROGRAMS, programs, strict=True)}
        for name, code in codes.items():
            if code is not None:
                _print_line("memory", f"{name} ended with {code}; what else runs is ended, too")
        if signals:
            _print_line("memory", "both are being ended; the worker stops its jobs first")
    finally:
        # The worker needs time to end its jobs.
        _end(programs, worker_times(context.env).drain + KILL_MARGIN_SECONDS)
        for relay in relays:
            relay.join(LAST_LINES_SECONDS)
    return 1 if any(codes.values()) else 0


def _collect_signals() -> Sequence[int]:
    """Return a list to which Ctrl-C, SIGTERM and the end of the terminal are added; the last one not under `nohup`."""
    came: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: came.append(number))  # A handler must take no lock.
    return came


def _start(words: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a program in a session of its own: a signal of the terminal reaches it by `run` alone."""
    return subprocess.Popen(
        [sys.executable, "-m", "memoryvault", *words.split()],
        env=environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


def _relay(name: str, program: subprocess.Popen[str]) -> None:
    """Print each line of a program after its time and name."""
    assert program.stdout is not None
    _print_line(name, f"runs as process {program.pid}")
    for line in program.stdout:
        _print_line(name, line.rstrip("\n"))


def _print_line(name: str, line: str) -> None:
    with suppress(OSError, OutputRefused):  # A closed window, `| head` or a full disk must not stop the programs.
        # Its end is part of the text, and so of one write: the lines of two threads do not run together.
        print(f"{datetime.now().astimezone():%H:%M:%S} {name:6} | {line}\n", end="", flush=True)


def _end(programs: Sequence[subprocess.Popen[str]], within_seconds: float) -> None:
    """Tell the programs to end, and kill what still runs after `within_seconds`."""
    for program in programs:
        program.terminate()
    for program in programs:
        try:
            program.wait(within_seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
