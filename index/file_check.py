"""Check the files of the hits, on a disk that may not answer.

A hit is checked against its file before it is shown. On a network drive that hangs, or a disk that has to spin up, a
check takes seconds or never ends, and a thread that is blocked in one cannot be freed. So checks run in separate
threads, for which a recall waits only as long as it has time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ..runtime.errors import PathRefused
from ..runtime.paths import is_regular, resolve_inside
from .catalog_reader import EntryRow

MAX_FILE_BYTES = 2_000_000
"""Of a larger file that changed since it was indexed, only the beginning is read."""
MAX_WAIT_SECONDS = 0.08
"""A disk that has not read ten files by then is asleep or gone."""
MAX_WAIT_WITHOUT_DEADLINE_SECONDS = 2.0
"""The same for a recall without a deadline."""
MAX_RUNNING_CHECKS = 32
"""Most threads that may be blocked. Beyond that the disk counts as dead, and no more are started."""


class FileStatus(Enum):
    """The state of an entry's file, compared with the index."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"
    NO_VAULT = "no vault"
    """The vault is not mounted, so nothing is known to be gone."""
    LATE = "late"
    """The disk has not answered in time."""


@dataclass(frozen=True)
class FileCheck:
    """The status of a file and, of a changed one, its content."""

    status: FileStatus
    data: bytes = b""


class FileChecker:
    """Checks files below `vault`; may be used from several threads."""

    def __init__(self, vault: Path) -> None:
        self._vault = vault
        self._running = 0
        self._lock = threading.Lock()

    def check(self, rows: Sequence[EntryRow], deadline: float | None) -> dict[int, FileCheck]:
        """Compare each row with its file, by rowid; FileStatus.LATE where that takes beyond `deadline` (monotonic).

        Waits MAX_WAIT_SECONDS at most, without a deadline MAX_WAIT_WITHOUT_DEADLINE_SECONDS.
        """
        checks: dict[int, FileCheck] = {}
        done = threading.Event()

        def run() -> None:
            try:
                for row in rows:
                    checks[row.rowid] = self._check(row)
            finally:
                with self._lock:
                    self._running -= 1
                done.set()

        now = time.monotonic()
        with self._lock:
            may_start = self._running < MAX_RUNNING_CHECKS
            self._running += may_start
        latest = now + MAX_WAIT_WITHOUT_DEADLINE_SECONDS if deadline is None else min(deadline, now + MAX_WAIT_SECONDS)
        if may_start:
            threading.Thread(target=run, name="files", daemon=True).start()
            done.wait(max(0.0, latest - time.monotonic()))
        late = FileCheck(FileStatus.LATE)
        return {row.rowid: checks.get(row.rowid, late) for row in rows}

    def _check(self, row: EntryRow) -> FileCheck:
        file = self._vault / row.path
        try:
            state = os.stat(file)
            if not is_regular(state):  # opening a pipe would block this thread for good
                return FileCheck(FileStatus.UNREADABLE)
            is_changed = state.st_mtime_ns != row.mtime_ns or state.st_size != row.size
            if is_changed:
                resolve_inside(self._vault, row.path)
            with open(file, "rb") as stream:  # Also of an unchanged file: rights may have changed alone.
                data = stream.read(MAX_FILE_BYTES) if is_changed else b""
            return FileCheck(FileStatus.CHANGED if is_changed else FileStatus.UNCHANGED, data)
        except PathRefused:
            return FileCheck(FileStatus.GONE)  # It has become a link that leaves the vault.
        except (FileNotFoundError, NotADirectoryError):
            return FileCheck(FileStatus.GONE if self._vault.is_dir() else FileStatus.NO_VAULT)
        except OSError:
            return FileCheck(FileStatus.UNREADABLE)
