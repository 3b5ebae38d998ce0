"""One worker per state folder: a lock on a file, and what to do about a holder that no longer lives."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from ...vault.errors import MemoryVaultError

LOOK_SECONDS = 0.05
"""Far longer than `lock_holder` holds a lock that nobody else does."""
PAUSE_SECONDS = 0.002


class WorkerRunning(MemoryVaultError):
    """Another worker serves this state folder; `holder` is its process, where that is known."""

    def __init__(self, holder: int | None) -> None:
        said = "a worker is already running for this state folder"
        if holder is not None:
            # SIGTERM drains. A service manager starts it again.
            said += (
                f" (pid {holder}); `kill {holder}` ends it when its jobs are done, "
                "`memory service remove` if it is a service"
            )
        super().__init__(said)


class WorkerLock:
    """An flock on `run/worker.lock`; the kernel drops it with the process, however that dies.

    A holder that is stopped (SIGSTOP, a debugger) keeps it though it beats no more.  `take_over` then puts a
    new file in its place: the old holder finds with `is_held` that it was replaced, and leaves.  Until
    it finds out, fencing keeps it from ending any job.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._fd: int | None = None
        self._refused_by: tuple[int, int] | None = None

    def acquire(self) -> bool:
        """False if another process holds it, and does not just look whether one does."""
        until = time.monotonic() + LOOK_SECONDS
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._refused_by = _identity(os.fstat(fd))
                os.close(fd)
                if time.monotonic() > until:
                    return False
                time.sleep(PAUSE_SECONDS)
                continue
            if _same_file(fd, self._path):
                self._hold(fd)
                return True
            os.close(fd)  # Replaced between open and lock.

    def take_over(self) -> bool:
        """Replace the lock that refused `acquire`, whose holder is known not to live.

        False if somebody else has replaced it meanwhile and holds the new one.
        """
        with open(self._path.with_suffix(".takeover"), "w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if _identity(os.stat(self._path)) == self._refused_by:
                    os.unlink(self._path)
            return self.acquire()

    def _hold(self, fd: int) -> None:
        os.ftruncate(fd, 0)
        os.write(fd, b"%d\n" % os.getpid())
        self._fd = fd

    def is_held(self) -> bool:
        """Whether the file is still the one we hold."""
        return self._fd is not None and _same_file(self._fd, self._path)

    def holder(self) -> int | None:
        """The pid in the file."""
        try:
            return int(self._path.read_text())
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Drop it; the file stays, so that nobody locks a name that is being removed."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _same_file(fd: int, path: Path) -> bool:
    try:
        return _identity(os.stat(path)) == _identity(os.fstat(fd))
    except OSError:
        return False
