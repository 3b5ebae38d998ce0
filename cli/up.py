"""`memory service up`: what the Procfile names, run together by honcho."""

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
"""What the Procfile has: the end of one ends the other, so the recall service stays though nobody asks it anything."""
KILL_MARGIN_SECONDS = 10.0
"""Beyond the worker's own limit, within which it stops what runs and gives it back."""
RELAY_POLL_SECONDS = 0.05
LOST_STATUS = 1
STOPPED_BY_SIGNAL = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


class PlainPrinter(Printer):  # type: ignore[misc]
    """honcho's printer: its colours reach a terminal, what the two processes say is text."""

    def write(self, message: Message) -> None:
        """Print each line of the message behind its time and name."""
        data = message.data.decode("utf-8", "replace") if isinstance(message.data, bytes) else message.data
        with suppress(OSError):  # They go on, whether anybody reads it or not (a closed window, `| head`, a full disk).
            super().write(message._replace(data=plain(data)))


class BoundProcess(Process):  # type: ignore[misc]
    """honcho's process, run by a relay between it and the manager: it ends when the manager is gone."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._kill_after = honcho_manager.KILL_WAIT

    def run(self, events: Any = None, ignore_signals: bool = False) -> None:
        """Run it and pass on what it says; called in the relay."""
        threading.Thread(target=self._follow_manager, args=(events,), daemon=True).start()
        super().run(events, ignore_signals)

    def _follow_manager(self, events: Any) -> None:
        manager = multiprocessing.parent_process()
        assert manager is not None
        wait([manager.sentinel])
        events.cancel_join_thread()  # Nobody reads any more what the relay has left to say.
        while self._child is None:  # It is being started.
            time.sleep(RELAY_POLL_SECONDS)
        self._child.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(self._kill_after)
        self._child.kill()


class TerminalManager(Manager):  # type: ignore[misc]
    """honcho's manager: the end of its terminal ends what it runs, as Ctrl-C does, unless `nohup` says otherwise.

    A program whose relay was killed counts as ended, which honcho would wait for.
    """

    returncode: int | None

    def __init__(self, printer: Printer) -> None:
        super().__init__(printer)
        self._process_ctor = BoundProcess

    def _start(self) -> None:
        # The relays between are not to die of it: then nobody would hear of the programs' ends.
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        super()._start()
        if before != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._hang_up)

    def _all_started(self) -> bool:
        self._give_up_lost()  # Called with each look of the loop.
        return bool(super()._all_started())

    def _give_up_lost(self) -> None:
        for name, program in self._processes.items():
            relay = program.get("process")
            # One that is only being started has no exit code either: a signal may come in between.
            if relay is None or "returncode" in program or relay.exitcode is None or not self.events.empty():
                continue
            program["returncode"] = LOST_STATUS
            if self.returncode is None:
                self.returncode = LOST_STATUS
            if program.setdefault("pid", 0):
                self._procmgr.terminate(program["pid"])
            self._system_print(f"{name} is stopped: what passes on its output was killed\n")

    _is_end_wanted = False

    def terminate(self) -> None:
        """End what runs, once all of it has started: before that honcho knows no process that it could end."""
        if self._all_started():
            super().terminate()
        else:
            self._is_end_wanted = True

    def _system_print(self, data: str) -> None:
        super()._system_print(data)  # Called for each start, when its process is known.
        if self._is_end_wanted and self._all_started():
            self._is_end_wanted = False
            super().terminate()

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        self.returncode = 128 + number
        self.terminate()


def shell_line(command: str) -> str:
    """What a shell runs for `memory <command>`, without staying itself."""
    return f"exec {shlex.quote(sys.executable)} -m memoryvault {command}"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory service up`."""
    parser.epilog = EPILOG


def run(args: argparse.Namespace, context: Context) -> int:
    """Run both until one ends or a signal comes; the other is stopped with it."""
    del args
    if (holder := lock_holder(context.state.worker_lock)) is not None:
        # Asked before anything is stopped: it may be another of these, which would end with its recall service.
        raise WorkerRunning(holder)
    if stop_background(context.state, "recall"):
        note("memory: stopped the recall service that a session had started; this one takes over")
    # What still runs so long after the first has ended is killed; a worker is to end its jobs first.
    honcho_manager.KILL_WAIT = worker_times(context.env).drain + KILL_MARGIN_SECONDS
    manager = TerminalManager(PlainPrinter(beneath(sys.stdout)))
    environment = child_environment(context.settings)
    for name, command in PROGRAMS.items():
        manager.add_process(name, shell_line(command), env=environment, cwd="/")
    manager.loop()
    # Being stopped by a signal is how this command ends; anything else is what the process died of.
    ended = manager.returncode
    return 0 if ended is None or ended in STOPPED_BY_SIGNAL else int(ended)
