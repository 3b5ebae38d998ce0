"""The connection to queue.db: one per process part, shared by its threads, one transaction at a time."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from . import queries, schema
from .schema import DATABASE_ERRORS, is_busy

BUSY_SECONDS = 10.0


class QueueDatabase:
    """queue.db, opened and migrated.

    One connection behind a lock rather than one per thread: SQLite has one writer anyway, and waiting for a
    lock is cheaper than its busy handler, which sleeps.  Every method raises QueueUnavailable if the file is
    locked for longer than `busy_seconds`, missing (unless `create`) or damaged.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Callable[[], float] | None,
        busy_seconds: float,
        create: bool,
        wakeup: Callable[[], None] | None,
    ) -> None:
        self.path = Path(path)
        self.wakeup = wakeup
        """Called after each commit that sent a message."""
        self.damaged = False
        """Set once SQLite has found the file broken."""
        self._clock = clock
        self._lock = threading.RLock()
        self._depth = 0
        self._wake_after_commit = False
        self._durable = False
        self._now: float | None = None
        self._busy_seconds = busy_seconds
        self._conn = schema.connect(self.path, busy_seconds=busy_seconds, create=create)

    def close(self) -> None:
        """Close the file; the ledger can't be used afterwards."""
        with self._lock:
            self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self, *, durable: bool = False) -> _Transaction:
        """One write transaction, as a context that gives the connection; joins the one this thread is in.

        `durable` syncs to disk at commit (synchronous=FULL): an accepted job survives a power cut.
        Otherwise a power cut may undo the last commits, never part of one, and the work is done again.
        """
        return _Transaction(self, durable)

    def _begin(self, durable: bool) -> None:
        if durable != self._durable:
            self._conn.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
            self._durable = durable
        self._patiently("BEGIN IMMEDIATE")
        self._wake_after_commit = False
        self._now = None

    def _patiently(self, sql: str, parameters: Mapping[str, object] | None = None) -> sqlite3.Cursor:
        """Execute, and wait while another process holds the lock.

        SQLite's own busy handler sleeps up to a tenth of a second between two looks, and so lets newcomers
        pass those that wait: with eight writers its slowest wait was over half a second.
        """
        try:
            return self._conn.execute(sql, parameters or {})
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        started = time.monotonic()
        while True:
            waited = time.monotonic() - started
            time.sleep(_pause(waited) * random.uniform(0.5, 1.5))
            try:
                return self._conn.execute(sql, parameters or {})
            except sqlite3.OperationalError as error:
                if not is_busy(error) or waited >= self._busy_seconds:
                    raise

    def _unavailable(self, error: Exception) -> QueueUnavailable:
        """The error of a locked, full, missing or damaged file in our words."""
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
        """All rows of a query of `queries`."""
        with self._lock, self._wrapped():
            return self._patiently(sql, parameters).fetchall()

    def now(self) -> float:
        """Unix seconds of the database's clock; one transaction has one time."""
        if self._clock is not None:
            return self._clock()
        with self._lock:
            if self._depth and self._now is not None:
                return self._now
            with self._wrapped():
                self._now = float(self._conn.execute(queries.CLOCK).fetchone()[0])
            return self._now

    def checkpoint(self) -> None:
        """Move what the write-ahead log holds into the file, so that no hook has to do it at its commit."""
        with self._lock, self._wrapped():
            self._conn.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def is_complete(self) -> bool:
        """Whether a new queue.db has taken in what spool and markers say; a crash before leaves it false."""
        with self._lock, self._wrapped():
            return bool(self._patiently("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID)

    def mark_complete(self) -> None:
        """Say so."""
        with self.transaction(durable=True) as conn:
            conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID:d}")

    def schema_version(self) -> int:
        """The version in the file now; more than schema.VERSION once a newer package has migrated it."""
        with self._lock, self._wrapped():
            return int(self._patiently("PRAGMA user_version").fetchone()[0])


def _pause(waited: float) -> float:
    """Seconds until the next look at a lock: who has waited for long looks more often, so that it gets its turn
    before a newcomer; until it is plain that somebody keeps the lock."""
    if waited < 0.02:
        return 0.003
    if waited < 0.05:
        return 0.001
    return 0.0003 if waited < 0.5 else 0.01


class _Transaction:
    """What `QueueDatabase.transaction` returns.  A class, not a generator: it runs several times per job."""

    __slots__ = ("_database", "_durable", "_outermost")

    def __init__(self, database: QueueDatabase, durable: bool) -> None:
        self._database = database
        self._durable = durable
        self._outermost = False

    def __enter__(self) -> sqlite3.Connection:
        database = self._database
        database._lock.acquire()
        try:
            if database._depth == 0:
                self._outermost = True
                database._begin(self._durable)
            database._depth += 1
        except BaseException as error:
            database._lock.release()
            if isinstance(error, DATABASE_ERRORS):
                raise database._unavailable(error) from error
            raise
        return database._conn

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        database = self._database
        wake = False
        try:
            if not self._outermost:
                return
            try:
                if error is None:
                    kill_point("before-commit")
                    database._conn.execute("COMMIT")
                    wake = database._wake_after_commit
            except DATABASE_ERRORS as failure:
                error = failure
            if error is not None:
                if database._conn.in_transaction:
                    with suppress(sqlite3.Error):  # A full disk may have rolled it back already.
                        database._conn.execute("ROLLBACK")
                if isinstance(error, DATABASE_ERRORS) and (
                    not isinstance(error, sqlite3.IntegrityError) or database._is_damage(error)
                ):
                    raise database._unavailable(error) from error
                if kind is None:
                    raise error
        finally:
            database._depth -= 1
            database._lock.release()
        if wake and database.wakeup is not None:
            database.wakeup()
