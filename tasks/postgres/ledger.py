"""The ledger's rules over PostgreSQL: many workers on many machines claim from one queue.

What a transaction of SQLite has by being the only writer is had here by locks, always taken in this order: the key of
the job (an advisory lock), then its row. A row that another transaction holds is passed over.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from types import ModuleType
from typing import Any, Self

import psycopg

from ...runtime.errors import QueueUnavailable, SchemaTooNew
from ...runtime.killpoint import kill_point
from ..queue.kinds import SHARED_POLICIES, UNLIMITED, KindPolicy
from ..queue.ledger import Claim, Connection, LedgerRules, NewJob, Refusal
from . import schema, statements
from .connection import Address, Impatient

LONGEST_PAUSE_SECONDS = 30.0
"""Between two attempts to reach a server that is away."""


class PostgresLedger(LedgerRules):
    """The ledger in the database that `conninfo` names (a URL or `key=value` pairs, as libpq takes them).

    `machine` is this one's name, for the jobs that are addressed to it; with `work` it takes what anybody may do as
    well. One connection behind a lock; it is made anew when the server was restarted or could not be reached. Every
    method raises QueueUnavailable meanwhile, and its message never holds the password.
    """

    _sql: ModuleType = statements

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
        connect: bool = True,
    ) -> None:
        self.policies = policies
        self.doorbells = statements.doorbells_of(machine, work=work)
        self.bell = bell
        self._address = Address(conninfo)
        self._machine = machine
        self._clock = clock
        self._chance = chance or random.Random()
        self._lock = threading.RLock()
        self._depth = 0
        self._ring_after_commit = False
        self._now: float | None = None
        self._conn: Impatient | None = None
        self._failures = 0
        self._away_until = 0.0
        self._reason = ""
        if connect:
            self.connect()

    @property
    def address(self) -> Address:
        """Where the database is."""
        return self._address

    def connect(self) -> None:
        """Reach the database, and migrate it if that is needed and the role may."""
        with self._lock, self._wrapped():
            self._connected()

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler is between: nothing can be listened for then. False before the database is reached."""
        with self._lock:
            return self._conn is not None and self._conn.pooled

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

    def _connected(self) -> Impatient:
        if self._depth and self._conn is not None:
            return self._conn  # Lost or not: the rest of a transaction must not go into another connection.
        if self._conn is not None and (self._conn.closed or self._conn.broken):
            self._conn.close()
            self._conn = None
        if self._conn is None:
            if time.monotonic() < self._away_until:
                raise QueueUnavailable(self._reason)
            try:
                self._conn = self._reach()
            except BaseException as error:
                # At once after the first failure, then ever later: those who ask meanwhile are answered at once.
                pause = min(LONGEST_PAUSE_SECONDS, 0.25 * 2.0**self._failures) if self._failures else 0.0
                self._failures += 1
                self._away_until = time.monotonic() + pause * (0.5 + self._chance.random() / 2)
                self._reason = self._unavailable(error) if isinstance(error, psycopg.Error) else str(error)
                raise
            self._failures = 0
        return self._conn

    def _reach(self) -> Impatient:
        conn = self._address.connect(self._machine)
        try:
            found = schema.version(conn)
            if found < schema.VERSION:
                if not schema.may_migrate(conn):
                    lacks = f"has schema {found}, {schema.VERSION} is needed" if found else "shows this role no tables"
                    raise QueueUnavailable(f"the shared queue {lacks}: its owner runs `memory jobs queue migrate`")
                schema.migrate(conn)
            schema.check(found)
        except SchemaTooNew as error:
            conn.close()
            raise QueueUnavailable(str(error)) from None
        except BaseException:
            conn.close()
            raise
        return conn

    def check_schema(self) -> None:
        """Raise QueueUnavailable, now and at every later call, once a newer package has migrated the database."""
        with self._lock:
            found = int(self.read(statements.SCHEMA_VERSION)[0][0])
            if found > schema.VERSION and self._conn is not None:
                self._conn.close()
                self.connect()

    def has_doorbell(self) -> bool:
        """Whether something waits for this machine."""
        return bool(self.read(self._sql.ANY_DOORBELL, self.doorbells))

    def runs_for(self, worker: str) -> bool:
        """Whether a job runs whose owner is of this worker."""
        return bool(self.read(self._sql.RUNS_FOR, {"worker": worker}))

    def forget_worker(self, owner: str) -> None:
        """The worker leaves: it has no beat any more."""
        with self.transaction() as conn:
            conn.execute(self._sql.FORGET_WORKER, {"owner": owner})

    def forget_silent_workers(self, seconds: float) -> int:
        """The same for those that gave no sign for so long; how many."""
        with self.transaction() as conn:
            return conn.execute(self._sql.FORGET_SILENT_WORKERS, {"before": self.now() - seconds}).rowcount

    def drop_stale(self, seconds: float, most: int) -> int:
        """Delete jobs that were asked for so long ago and never taken, or died, with their doorbells; how many.

        At most `most` at once. Such is what was for a machine that has another name now, or that no version here knows.
        """
        with self.transaction() as conn:
            parameters = {"before": self.now() - seconds, "most": most}
            stale = [row[0] for row in conn.execute(self._sql.STALE_JOBS, parameters).fetchall()]
            if stale:
                conn.execute(self._sql.STALE_DOORBELLS, {"jobs": stale})
        return len(stale)

    def _unavailable(self, error: psycopg.Error) -> str:
        return f"the shared queue cannot be used: {self._address.said(error)}"

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
                conn = self._begun()
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

    def _begun(self) -> Impatient:
        """In a transaction. That the server was restarted since is only seen by asking it: then once more."""
        conn = self._connected()
        try:
            conn.execute(conn.begin)
        except psycopg.OperationalError:
            if not conn.broken:
                raise
            conn = self._connected()
            conn.execute(conn.begin)
        return conn

    def read(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        with self._lock, self._wrapped():
            conn = self._connected()
            try:
                return conn.execute(sql.encode(), parameters or {}).fetchall()
            except psycopg.OperationalError:
                if self._depth or not conn.broken:
                    raise
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
            raise QueueUnavailable(self._unavailable(error)) from None

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
