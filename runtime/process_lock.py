"""A lock file that one process holds for as long as it lives: the worker, and the recall service.

The kernel drops the lock with the process, however that dies. A holder that is stopped (SIGSTOP, a debugger, a dead
disk) keeps it; who knows that it does not live puts a new file in its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from .layout import FILE_MODE

LOOK_SECONDS = 0.05
"""Far longer than `lock_holder` holds a lock that nobody else does."""
PAUSE_SECONDS = 0.002


class ProcessLock:
    """The lock at one path, with its holder's process id in the file. All methods but `is_held` and `release` raise
    OSError where the file cannot be made."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._descriptor: int | None = None
        self._refused_by: os.stat_result | None = None

    def acquire(self) -> bool:
        """False if another process holds it, and does not just look whether one does."""
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
        """Replace the lock that refused `acquire`, whose holder is known not to live.

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
        """Whether the file is still the one we hold."""
        return self._descriptor is not None and is_at(self._path, os.fstat(self._descriptor))

    def release(self) -> None:
        """Drop it; the file stays, so that nobody locks a name that is being removed."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def lock_holder(path: Path | str) -> int | None:
    """The process id in a lock file that is held by a process that wrote its own; None when nobody holds it."""
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
    """Is it the file that is there now, or one that was replaced or removed?"""
    try:
        return os.path.samestat(os.stat(path), file)
    except OSError:
        return False
