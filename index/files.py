"""Looking at the files of the hits, on a disk that may not answer.

A hit is checked against its file before it is shown. On a network drive that hangs, or one that has to wake up, a
look takes seconds or never ends, and a thread that is caught in one cannot be freed. So they are made by a thread of
their own, for which a recall waits as long as it has time.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ..vault.errors import PathRefused
from ..vault.paths import is_regular, resolve_inside
from .filescan import MAX_FILE_BYTES
from .reader import EntryRow

PATIENCE_SECONDS = 0.08
"""A disk that has not shown ten files by then is asleep or gone; others wait for the place of who waits here."""
UNHURRIED_PATIENCE_SECONDS = 2.0
"""The same for who has time: it holds a place (admission.py) meanwhile, and hooks wait for one."""
STUCK_SECONDS, STUCK_PATIENCE_SECONDS = 0.05, 0.01
"""While a look has been under way for so long, the next ones are given this little: a thousand times what they take
where the disk answers, since it may be one file alone that does not."""
CAUGHT_AT_MOST = 32
"""Threads that may be caught; then the disk is taken to be dead, and no more are sent."""


class Look(Enum):
    """What became of an entry's file since it was indexed."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"
    UNREADABLE = "unreadable"
    NO_VAULT = "no vault"
    """Nothing is gone: the vault is not mounted."""
    LATE = "late"
    """The disk has not answered in time."""


@dataclass(frozen=True)
class Seen:
    """A look and, of a changed file, its content."""

    look: Look
    data: bytes = b""


class FileLooks:
    """Looks at files below `vault`; for several threads."""

    def __init__(self, vault: Path) -> None:
        self._vault = vault
        self._caught: dict[int, float] = {}
        """Looks under way, and since when (monotonic)."""
        self._number = itertools.count()
        self._lock = threading.Lock()

    def look(self, rows: Sequence[EntryRow], deadline: float | None) -> dict[int, Seen]:
        """By rowid, what each row's file is now; Look.LATE for those that take longer than `deadline` (monotonic).

        The disk gets PATIENCE_SECONDS at most, without a deadline UNHURRIED_PATIENCE_SECONDS.
        """
        found: dict[int, Seen] = {}
        done = threading.Event()

        def run() -> None:
            try:
                for row in rows:
                    found[row.rowid] = self._look(row)
            finally:
                with self._lock:
                    del self._caught[number]
                done.set()

        now = time.monotonic()
        number = next(self._number)
        with self._lock:
            free = len(self._caught) < CAUGHT_AT_MOST
            stuck = any(now - since > STUCK_SECONDS for since in self._caught.values())
            if free:
                self._caught[number] = now
        patience = UNHURRIED_PATIENCE_SECONDS if deadline is None else PATIENCE_SECONDS
        latest = now + (STUCK_PATIENCE_SECONDS if stuck else patience)
        if deadline is not None:
            latest = min(latest, deadline)
        if free:
            threading.Thread(target=run, name="files", daemon=True).start()
            done.wait(max(0.0, latest - time.monotonic()))
        late = Seen(Look.LATE)
        return {row.rowid: found.get(row.rowid, late) for row in rows}

    def _look(self, row: EntryRow) -> Seen:
        file = self._vault / row.path
        try:
            state = os.stat(file)
            if not is_regular(state):  # opening a pipe would catch this thread for good
                return Seen(Look.UNREADABLE)
            if state.st_mtime_ns == row.mtime_ns and state.st_size == row.size:
                return Seen(Look.SAME)
            resolve_inside(self._vault, row.path)
            with open(file, "rb") as stream:
                return Seen(Look.CHANGED, stream.read(MAX_FILE_BYTES * 8))
        except PathRefused:
            return Seen(Look.GONE)  # It has become a link that leaves the vault.
        except (FileNotFoundError, NotADirectoryError):
            return Seen(Look.GONE if self._vault.is_dir() else Look.NO_VAULT)
        except OSError:
            return Seen(Look.UNREADABLE)
