"""The recall service as a process: its socket, its lock, and the signals that end it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..runtime.errors import MemoryVaultError
from ..runtime.layout import make_socket_folder
from ..runtime.process_lock import ProcessLock

LEAVING_SECONDS = 3.0
"""How long a new service waits for one that is ending: a second longer than service.DRAIN_SECONDS."""


class CannotServe(MemoryVaultError):
    """The service's lock or socket cannot be made."""


def listen(path: str, backlog: int) -> socket.socket:
    """Listen on a socket that only this user can open. Replaces a stale one, so the caller must hold the lock.

    Raises CannotServe.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        make_socket_folder(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        old = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(old)
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        raise _cannot_serve(path, error) from error
    return listener


def _cannot_serve(path: str | Path, error: OSError) -> CannotServe:
    place, why = error.filename or path, error.strerror or error
    return CannotServe(f"the recall service cannot start ({place}: {why}): prompts are answered by keywords only")


@contextlib.contextmanager
def hold_lock(path: Path, socket_path: Path, hangs: Callable[[], bool]) -> Iterator[bool]:
    """Hold the lock at `path`; yield False when another process holds it.

    A process that has removed its socket is ending: its lock is waited for, so that the service which was started to
    replace it does not give up. One that `hangs` (stopped, or its disk does not answer) is replaced: it leaves when it
    goes on and finds that its socket is not its own any more. Raises CannotServe.
    """
    lock = ProcessLock(path)
    try:
        try:
            is_held = _acquire(lock, socket_path, hangs)
        except OSError as error:
            raise _cannot_serve(path, error) from error
        yield is_held
    finally:
        lock.release()


def _acquire(lock: ProcessLock, socket_path: Path, hangs: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + LEAVING_SECONDS
    while not lock.acquire():
        if socket_path.exists() or time.monotonic() > deadline:
            # A second one that saw it hang finds the lock file replaced, and the new one taken.
            return hangs() and lock.take_over()
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def call_on_signals(end: Callable[[], None]) -> Iterator[None]:
    """Make SIGTERM, SIGINT and SIGHUP call `end` while the block runs."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda *_: end()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
