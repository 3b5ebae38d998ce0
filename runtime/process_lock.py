"""A lock file that one process holds while it lives: the worker, and the recall service.

The kernel drops the lock with the process, however that dies. A holder that is stopped (SIGSTOP, a debugger, a dead
disk) keeps it; a process that knows it to be dead replaces the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from .layout import FILE_MODE

LOOK_SECONDS = 0.05
"""Seconds; `lock_holder` holds a free lock for much less."""
PAUSE_SECONDS = 0.002


class ProcessLock:
    """The lock at one path, with its holder's process id in the file. All methods but `is_held` and `release` raise
    OSError where the file cannot be made."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._descriptor: int | None = None
        self._refused_by: os.stat_result | None = None

    def acquire(self) -> bool:
        """Take the lock; return False if another process holds it for more than a moment."""
        until = time.monotonic() + LOOK_SECONDS
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._refused_by = os.fstat(descriptor)
                os.close(descriptor)
                if time.monotonic() > until:
                    return False
                time.sleep(PAUSE_SECONDS)
                continue
            if is_at(self._path, os.fstat(descriptor)):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, b"%d\n" % os.getpid())
                self._descriptor = descriptor
                return True
            os.close(descriptor)  # Replaced between open and lock.

    def take_over(self) -> bool:
        """Replace the lock that refused `acquire`, when its holder is known to be dead.

        The old holder finds with `is_held` that it was replaced. False if somebody else has replaced it meanwhile and
        holds the new one.
        """
        guard = os.open(self._path.with_suffix(".takeover"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if self._refused_by is not None and is_at(self._path, self._refused_by):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
            return self.acquire()
        finally:
            os.close(guard)

    def is_held(self) -> bool:
        """Whether the lock is still held, by the file at its path."""
        return self._descriptor is not None and is_at(self._path, os.fstat(self._descriptor))

    def release(self) -> None:
        """Release the lock. The file stays, so that nobody locks a name that is being removed."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def lock_holder(path: Path | str) -> int | None:
    """Return the process id in a lock file held by the process that wrote it; None when the lock is free."""
    try:
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read(32))
    except (OSError, ValueError):
        return None
    return None


def is_at(path: Path | str, file: os.stat_result) -> bool:
    """Whether the path still has this file, and not another or none."""
    try:
        return os.path.samestat(os.stat(path), file)
    except OSError:
        return False
