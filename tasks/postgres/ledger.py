"""The ledger's rules over PostgreSQL: many workers on many machines claim from one queue.

What a transaction of SQLite has by being the only writer is had here by locks, always taken in this order: the key of
the job (an advisory lock), then its row. A row that another transaction holds is passed over.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Self

import psycopg

from ...vault.errors import QueueUnavailable
from ...vault.killpoint import kill_point
from ..kinds import SHARED_POLICIES, UNLIMITED, KindPolicy
from ..ledger import Claim, Connection, LedgerRules, NewJob, Refusal
from . import schema, statements

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 30
"""A server that takes longer for one statement is taken to be out of reach; nothing of it was done."""


class PostgresLedger(LedgerRules):
    """The ledger in the database that `conninfo` names (a URL or `key=value` pairs, as libpq takes them).

    `machine` is this one's name, for the jobs that are addressed to it; with `work` it takes what anybody may do as
    well. One connection behind a lock; it is made anew when the server was restarted or could not be reached. Every
    method raises QueueUnavailable meanwhile, and its message never holds the password.
    """

    _sql = statements

    def __init__(
        self,
        conninfo: str,
        *,
        policies: Mapping[str, KindPolicy] = SHARED_POLICIES,
        clock: Callable[[], float] | None = None,
        chance: random.Random | None = None,
        bell: Callable[[], None] | None = None,
        machine: str = "",
        work: bool = True,
    ) -> None:
        self.policies = policies
        self.doorbells = statements.doorbells_of(machine, work=work)
        self.bell = bell
        self._conninfo = conninfo
        self._clock = clock
        self._chance = chance or random.Random()
        self._lock = threading.RLock()
        self._depth = 0
        self._ring_after_commit = False
        self._now: float | None = None
        self._conn: psycopg.Connection[Any] | None = None
        with self._lock, self._wrapped():
            self._connected()

    def close(self) -> None:
        with self._lock:
            if self._conn is not None:
                self._conn.close()
                self._conn = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the database

    def _connected(self) -> psycopg.Connection[Any]:
        if self._conn is not None and (self._conn.closed or self._conn.broken):
            self._conn = None
        if self._conn is None:
            conn = psycopg.connect(
                self._conninfo,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                application_name="memoryvault",
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                tcp_user_timeout=STATEMENT_SECONDS * 1000,
            )
            try:
                # Not among the connection's options: those are the user's, and may name a schema.
                conn.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'".encode())
                schema.migrate(conn)
            except BaseException:
                conn.close()
                raise
            self._conn = conn
        return self._conn

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Connection]:
        """As the rules have it; every commit is durable (synchronous_commit is the server's own setting)."""
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._lock:
            if self._depth:
                self._depth += 1
                try:
                    yield self._connected()
                finally:
                    self._depth -= 1
                return
            with self._wrapped():
                conn = self._connected()
                conn.execute("BEGIN")
                self._ring_after_commit, self._now = False, None
                self._depth += 1
                try:
                    yield conn
                    kill_point("before-commit")
                    conn.execute("COMMIT")
                except BaseException:
                    with suppress(psycopg.Error):
                        conn.execute("ROLLBACK")
                    raise
                finally:
                    self._depth -= 1
            ring = self._ring_after_commit
        if ring and self.bell is not None:
            self.bell()

    def read(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        with self._lock, self._wrapped():
            return self._connected().execute(sql.encode(), parameters or {}).fetchall()

    def now(self) -> float:
        if self._clock is not None:
            return self._clock()
        with self._lock:
            if self._depth and self._now is not None:
                return self._now
            self._now = float(self.read(statements.CLOCK)[0][0])
            return self._now

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        try:
            yield
        except psycopg.IntegrityError:
            raise  # A bug of ours.
        except psycopg.Error as error:
            raise QueueUnavailable(f"the shared queue cannot be used: {_said(error)}") from None

    # ---- where one writer at a time is not enough

    def _enqueue(self, conn: Connection, job: NewJob) -> int:
        if job.unique_key is not None:
            conn.execute(statements.LOCK_KEY, {"unique_key": job.unique_key})
        return super()._enqueue(conn, job)

    def _claim(self, conn: Connection, job_id: int, owner: str, lease_seconds: float, now: float) -> Claim | Refusal:
        row = conn.execute(statements.KIND_AND_KEY, {"id": job_id}).fetchone()
        if row is not None:
            kind, unique_key = row
            if unique_key is not None:
                conn.execute(statements.LOCK_KEY, {"unique_key": unique_key})
            policy = self.policies.get(kind)
            if policy is not None and policy.concurrency < UNLIMITED:
                conn.execute(statements.LOCK_KIND, {"kind": kind})
        return super()._claim(conn, job_id, owner, lease_seconds, now)

    def _requeue_in(
        self, conn: Connection, claim: Claim, outcome: str, error: str, pause: float, *, uncounted: bool
    ) -> bool:
        if claim.unique_key is not None:
            conn.execute(statements.LOCK_KEY, {"unique_key": claim.unique_key})
        return super()._requeue_in(conn, claim, outcome, error, pause, uncounted=uncounted)


def _said(error: psycopg.Error) -> str:
    """The server's or the client's words in one line. libpq does not put a password into them."""
    return " ".join((str(error) or type(error).__name__).split())[:300]
