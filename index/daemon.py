"""The recall service as a process: its socket, its lock, and the signals that end it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..vault.errors import MemoryVaultError
from ..vault.layout import make_socket_folder

LEAVING_SECONDS = 3.0
"""How long a new service waits for one that is ending: a second longer than service.DRAIN_SECONDS."""


class CannotServe(MemoryVaultError):
    """The service's lock or socket cannot be made."""


def listen(path: str, backlog: int) -> socket.socket:
    """Listen on a socket that only this user can open. Replaces a stale one, so the caller must hold the lock.

    Raises CannotServe.
    """
    try:
        return _listen(path, backlog)
    except OSError as error:
        raise _cannot_serve(path, error) from error


def _cannot_serve(path: str | Path, error: OSError) -> CannotServe:
    place, why = error.filename or path, error.strerror or error
    return CannotServe(f"the recall service cannot start ({place}: {why}): prompts are answered by keywords only")


def _listen(path: str, backlog: int) -> socket.socket:
    make_socket_folder(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        old = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(old)
        listener.listen(backlog)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def hold_lock(lock: Path, socket_path: Path, hangs: Callable[[], bool]) -> Iterator[bool]:
    """Hold `lock` and write our pid into it; yield False when another process holds it.

    A process that has removed its socket is ending: its lock is waited for, so that the service which was started to
    replace it does not give up. One that `hangs` (stopped, or its disk does not answer) is replaced: it leaves when it
    goes on and finds that its socket is not its own any more. Raises CannotServe.
    """
    handle = _open_lock(lock)
    try:
        deadline = time.monotonic() + LEAVING_SECONDS
        while not _try_lock(handle, lock):
            if socket_path.exists() or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        else:
            _write_pid(handle)
            yield True
            return
        if not hangs():
            yield False
            return
        # A second one that saw it hang finds the lock file replaced, and the new one taken.
        with open(_open_lock(lock.with_suffix(".takeover")), "rb") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if _is_at(handle, lock):
                os.unlink(lock)
            os.close(handle)
            handle = _open_lock(lock)
            is_held = _try_lock(handle, lock)
        if is_held:
            _write_pid(handle)
        yield is_held
    finally:
        os.close(handle)


def _open_lock(lock: Path) -> int:
    try:
        return os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_serve(lock, error) from error


def _try_lock(handle: int, lock: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return _is_at(handle, lock)


def _is_at(handle: int, lock: Path) -> bool:
    """Is it the file that is there now, or one that was replaced?"""
    try:
        return os.path.samestat(os.stat(lock), os.fstat(handle))
    except FileNotFoundError:
        return False


def _write_pid(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, b"%d\n" % os.getpid(), 0)


@contextlib.contextmanager
def wake_on_signals(waker: socket.socket) -> Iterator[None]:
    """Make SIGTERM, SIGINT and SIGHUP write a byte to `waker` while the block runs."""

    def wake(*_: object) -> None:
        with contextlib.suppress(OSError):
            waker.send(b"1")

    previous = {number: signal.signal(number, wake) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
