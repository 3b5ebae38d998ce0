"""The connection to queue.db, shared by the threads of a process, with one transaction at a time."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from . import schema
from .schema import DATABASE_ERRORS, is_busy

BUSY_SECONDS = 10.0


class QueueDatabase:
    """queue.db, opened.

    One connection behind a lock rather than one per thread: SQLite has one writer anyway. Every method raises
    QueueUnavailable if the file is locked for longer than `busy_seconds`, missing (unless `create`) or damaged.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Callable[[], float],
        busy_seconds: float,
        create: bool,
        wakeup: Callable[[], None] | None,
    ) -> None:
        self.path = Path(path)
        self.wakeup = wakeup
        """Called after each commit that may have made a job due."""
        self.damaged = False
        """Set once SQLite has found the file broken."""
        self.now = clock
        """The time in Unix seconds."""
        self._lock = threading.RLock()
        self._wake_after_commit = False
        self._busy_seconds = busy_seconds
        self._conn = schema.connect(self.path, busy_seconds=busy_seconds, create=create)

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards."""
        with self._lock:
            self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block in one write transaction, or in the one that this thread is in.

        `durable` syncs to disk at commit (synchronous=FULL): an accepted job survives a power cut. Otherwise a power
        cut may undo the last commits, never part of one, and the work is done again.
        """
        with self._lock:
            if self._conn.in_transaction:
                yield self._conn
                return
            with self._wrapped():
                self._conn.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
                self._patiently("BEGIN IMMEDIATE")
                self._wake_after_commit = False
                try:
                    yield self._conn
                    kill_point("before-commit")
                    self._conn.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # A full disk may have rolled it back already.
                        self._conn.execute("ROLLBACK")
                    raise
            wake = self._wake_after_commit
        if wake and self.wakeup is not None:
            self.wakeup()

    def _patiently(self, sql: str, parameters: Mapping[str, object] | None = None) -> sqlite3.Cursor:
        """Execute, and wait while another process holds the lock.

        SQLite's own busy handler sleeps up to a tenth of a second between two tries, so that newcomers overtake those
        that wait: with eight writers its slowest wait was over half a second.
        """
        until = time.monotonic() + self._busy_seconds
        while True:
            try:
                return self._conn.execute(sql, parameters or {})
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= until:
                    raise
            time.sleep(random.uniform(0.0005, 0.002))

    def _unavailable(self, error: Exception) -> QueueUnavailable:
        """Return the QueueUnavailable for an error of SQLite."""
        if self._is_damage(error):
            self.damaged = True
            return schema.damaged(self.path, error)
        return schema.unavailable(self.path, error)

    def _is_damage(self, error: Exception) -> bool:
        return schema.is_damage(error) or (
            schema.is_doubtful(error) and schema.find_damage(self.path, schema.SHAPE) is not None
        )

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            if isinstance(error, sqlite3.IntegrityError) and not self._is_damage(error):
                raise  # A bug of ours.
            raise self._unavailable(error) from error

    def read(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """Return all rows of a query."""
        with self._lock, self._wrapped():
            return self._patiently(sql, parameters).fetchall()

    def schema_version(self) -> int:
        """Return the file's schema version; above schema.VERSION once a newer package has migrated it."""
        with self._lock, self._wrapped():
            return int(self._patiently("PRAGMA user_version").fetchone()[0])
