"""`memory service up`: run the programs of the Procfile together, by honcho."""

from __future__ import annotations

import argparse
import multiprocessing
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

from honcho import manager as honcho_manager
from honcho.manager import Manager
from honcho.printer import Message, Printer
from honcho.process import Process

from ..runtime.errors import WorkerRunning
from ..runtime.process_lock import lock_holder
from ..runtime.settings import child_environment
from ..tasks.queue.times import worker_times
from .context import Context
from .output import note
from .processes import stop_background
from .terminal_safety import beneath, plain

EPILOG = """example:
  memory service up             worker and recall service in one terminal; Ctrl-C stops both
"""

PROGRAMS = {"worker": "service worker", "recall": "service serve --stay"}
"""As in the Procfile. The end of one ends the other, so the recall service must not exit when idle."""
KILL_MARGIN_SECONDS = 10.0
"""Added to the worker's own limit, within which it stops its jobs and returns them to the queue."""
RELAY_POLL_SECONDS = 0.05
STOPPED_BY_SIGNAL = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


class PlainPrinter(Printer):  # type: ignore[misc]
    """honcho's printer: its own colours reach the terminal, the programs' control characters do not."""

    def write(self, message: Message) -> None:
        """Print each line of the message after its time and name."""
        data = message.data.decode("utf-8", "replace") if isinstance(message.data, bytes) else message.data
        with suppress(OSError):  # A closed window, `| head` or a full disk must not stop the programs.
            super().write(message._replace(data=plain(data)))


class BoundProcess(Process):  # type: ignore[misc]
    """honcho's process. A relay between it and the manager ends it when the manager is gone."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._kill_after = honcho_manager.KILL_WAIT

    def run(self, events: Any = None, ignore_signals: bool = False) -> None:
        """Run the program and pass on its output; called in the relay."""
        threading.Thread(target=self._follow_manager, args=(events,), daemon=True).start()
        super().run(events, ignore_signals)

    def _follow_manager(self, events: Any) -> None:
        manager = multiprocessing.parent_process()
        assert manager is not None
        wait([manager.sentinel])
        events.cancel_join_thread()  # Nobody reads the rest of the output.
        while self._child is None:  # The program is still starting.
            time.sleep(RELAY_POLL_SECONDS)
        self._child.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(self._kill_after)
        self._child.kill()


class TerminalManager(Manager):  # type: ignore[misc]
    """honcho's manager, ended by the end of its terminal as by Ctrl-C, unless it runs under `nohup`."""

    returncode: int | None

    def __init__(self, printer: Printer) -> None:
        super().__init__(printer)
        self._process_ctor = BoundProcess

    def _start(self) -> None:
        # The relays ignore it: if they ended first, the manager would not learn when the programs end.
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        super()._start()
        if before != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._hang_up)

    _is_end_wanted = False

    def terminate(self) -> None:
        """End the programs once all have started: before that honcho knows no process to end."""
        if self._all_started():
            super().terminate()
        else:
            self._is_end_wanted = True

    def _system_print(self, data: str) -> None:
        super()._system_print(data)  # honcho calls this for each start, when the process is known.
        if self._is_end_wanted and self._all_started():
            self._is_end_wanted = False
            super().terminate()

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        self.returncode = 128 + number
        self.terminate()


def shell_line(command: str) -> str:
    """The shell line for `memory <command>`; the shell replaces itself by the command."""
    return f"exec {shlex.quote(sys.executable)} -m memoryvault {command}"


def configure(parser: argparse.ArgumentParser) -> None:
    """`memory service up` has no arguments."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Run both until one ends or a signal comes, then stop the other."""
    del args
    if (holder := lock_holder(context.state.worker_lock)) is not None:
        # Checked before anything is stopped: if it is another `service up`, stopping its recall service would end it.
        raise WorkerRunning(holder)
    if stop_background(context.state, "recall"):
        note("memory: stopped the recall service that a session had started; this one takes over")
    # honcho kills what still runs this long after the first has ended; the worker needs time to end its jobs.
    honcho_manager.KILL_WAIT = worker_times(context.env).drain + KILL_MARGIN_SECONDS
    manager = TerminalManager(PlainPrinter(beneath(sys.stdout)))
    environment = child_environment(context.settings)
    for name, command in PROGRAMS.items():
        manager.add_process(name, shell_line(command), env=environment, cwd="/")
    manager.loop()
    # A signal is the normal end of this command; any other code is an error of a program.
    ended = manager.returncode
    return 0 if ended is None or ended in STOPPED_BY_SIGNAL else int(ended)
