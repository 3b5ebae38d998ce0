"""The recall service as a process: its socket, the lock that makes it the only one, the signals that end it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from ..vault.layout import make_socket_folder

LEAVING_SECONDS = 3.0
"""How long the next service waits for one that is ending: a second longer than that lets requests in progress take."""


def listen(path: str, backlog: int) -> socket.socket:
    """A listening socket that only this user can open; replaces a stale one (the caller holds the lock)."""
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
def only_one(lock: Path, socket_path: Path) -> Iterator[bool]:
    """Hold `lock` (its content: our pid); False when another process does.

    One that has taken its socket away is leaving: it is waited for, so that the service which was started
    to take its place does not give up.
    """
    handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LEAVING_SECONDS
        while not _try_lock(handle):
            if socket_path.exists() or time.monotonic() > deadline:
                yield False
                return
            time.sleep(0.02)
        os.ftruncate(handle, 0)
        os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        yield True
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def signals(waker: socket.socket) -> Iterator[None]:
    """SIGTERM, SIGINT and SIGHUP write to `waker` while the block runs."""

    def ring(*_: object) -> None:
        with contextlib.suppress(OSError):
            waker.send(b"1")

    previous = {number: signal.signal(number, ring) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
