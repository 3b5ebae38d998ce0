"""The job ledger: which jobs exist, who runs them, how they ended.

Guarantees, each by a single SQLite transaction:

- at most one job of a unique key is queued and at most one is running;
- only the owner of the current attempt can end it (fencing), so a late result of a lost attempt is dropped;
- an attempt that ends leaves a record in `history`; only `prune` deletes jobs.
"""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from ...runtime.closing import Closing
from ...runtime.killpoint import kill_point
from . import queries, schema
from .kinds import POLICIES, ArgsInvalid, Json, KindPolicy, validate_args
from .records import (
    STATES,
    Backlog,
    Claim,
    Due,
    Job,
    JobNotFound,
    JobStateRefused,
    NewJob,
    State,
    WorkerBeat,
    error_text,
    job_from_row,
)
from .schema import DATABASE_ERRORS, is_busy

BUSY_SECONDS = 10.0
LONGEST_LEASE_SECONDS = 3600.0
CLOCK_TOLERANCE_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 2 * 86_400.0
"""Longest delay of a job: a host's pause and a quiet period in the settings may be a day each."""
MAX_DEAD = 10_000


class Ledger(Closing):
    """The ledger in one queue.db; one writer at a time. Safe to share between threads.

    Every method raises QueueUnavailable if the file is locked for longer than `busy_seconds`, missing (unless `create`)
    or damaged.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        policies: Mapping[str, KindPolicy] = POLICIES,
        clock: Callable[[], float] = time.time,
        chance: random.Random | None = None,
        busy_seconds: float = BUSY_SECONDS,
        create: bool = True,
        wakeup: Callable[[], None] | None = None,
    ) -> None:
        self.path = Path(path)
        self.policies = policies
        self.wakeup = wakeup
        """Called after each commit that may have made a job due."""
        self.damaged = False
        """Set once SQLite has found the file broken."""
        self.now = clock
        """The time in Unix seconds."""
        self._chance = chance or random.Random()
        self._lock = threading.RLock()
        self._wake_after_commit = False
        self._busy_seconds = busy_seconds
        # One connection behind a lock rather than one per thread: SQLite has one writer anyway.
        self._conn = schema.connect(self.path, busy_seconds=busy_seconds, create=create)

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards."""
        with self._lock:
            self._conn.close()

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

    @contextmanager
    def _wrapped(self) -> Iterator[None]:
        try:
            yield
        except DATABASE_ERRORS as error:
            is_damage = schema.is_damage(error) or (
                schema.is_doubtful(error) and schema.find_damage(self.path, schema.SHAPE) is not None
            )
            if isinstance(error, sqlite3.IntegrityError) and not is_damage:
                raise  # A bug of ours.
            self.damaged = self.damaged or is_damage
            raise (schema.damaged if is_damage else schema.unavailable)(self.path, error) from error

    def read(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """Return all rows of a query."""
        with self._lock, self._wrapped():
            return self._patiently(sql, parameters).fetchall()

    # ---- enqueueing

    def enqueue(
        self,
        kind: str,
        args: Mapping[str, Json] | None = None,
        *,
        unique_key: str | None = None,
        delay_seconds: float = 0.0,
        due: Due = "sooner",
    ) -> int:
        """Enqueue durably and return the job's id, or that of the queued job with the same key.

        Raises ArgsInvalid if the arguments do not fit the kind.
        """
        return self.enqueue_all([NewJob(kind, args or {}, unique_key, delay_seconds, due=due)])[0]

    def enqueue_all(self, jobs: Iterable[NewJob]) -> list[int]:
        """Enqueue all jobs in one durable transaction, or none."""
        jobs = list(jobs)
        for job in jobs:
            self.check(job)
        with self.transaction(durable=True) as conn:
            return [self._enqueue(conn, job) for job in jobs]

    def check(self, job: NewJob) -> None:
        """Raise ArgsInvalid if the job's arguments do not fit its kind."""
        validate_args(job.kind, dict(job.args), self.policies)

    def _enqueue(self, conn: Connection, job: NewJob) -> int:
        now = self.now()
        run_at = job.run_at if job.run_at is not None else now + job.delay_seconds
        waiting = None
        if job.unique_key is not None:
            waiting = conn.execute(queries.QUEUED_BY_KEY, {"unique_key": job.unique_key}).fetchone()
        if waiting is None:
            inserted = conn.execute(
                queries.INSERT_JOB,
                {
                    "kind": job.kind,
                    "args": json.dumps(job.args, separators=(",", ":")),
                    "unique_key": job.unique_key,
                    "priority": self.policies[job.kind].priority,
                    "run_at": run_at,
                    "now": now,
                },
            ).fetchone()
            job_id = int(inserted[0])
        else:
            job_id, waiting_until = waiting
            run_at = run_at if job.due == "later" else min(run_at, waiting_until)
            conn.execute(queries.MOVE, {"id": job_id, "run_at": run_at})
        if run_at <= now:
            self._wake_after_commit = True
        return job_id

    def record_dead(self, kind: str, args: str, reason: str) -> None:
        """Record a job that could not be enqueued as dead, so that `memory jobs list` shows it."""
        with self.transaction(durable=True) as conn:
            parameters = {
                "kind": kind,
                "args": args,
                "error": error_text(reason),
                "now": self.now(),
            }
            conn.execute(queries.INSERT_DEAD, parameters)

    # ---- claiming

    def take(self, owner: Callable[[], str], lease_seconds: float) -> Claim | None:
        """Claim the next job that is due and may run; None if there is none. `owner` returns a new owner."""
        if self._next_claimable() is None:  # An idle look takes no write lock.
            return None
        kill_point("before-claim")
        with self.transaction() as conn:
            if (row := self._next_claimable()) is None:
                return None
            job_id, kind, args, unique_key, attempt = row
            claim = Claim(job_id, kind, args, unique_key, attempt + 1, owner())
            conn.execute(queries.CLAIM, {**_fence(claim), "now": self.now(), "lease": lease_seconds})
            return claim

    def _next_claimable(self) -> tuple[Any, ...] | None:
        """Return the next due job as a row of queries.NEXT; None if no place, key or kind is free."""
        running = self.read(queries.RUNNING_BY_KIND)
        full = [kind for kind, count in running if kind in self.policies and count >= self.policies[kind].concurrency]
        rows = self.read(queries.NEXT, {"now": self.now(), "full": json.dumps(full)})
        return rows[0] if rows else None

    # ---- while it runs

    def heartbeat(self, claims: Iterable[Claim], lease_seconds: float) -> list[Claim]:
        """Extend the leases; return the claims that no longer hold (expired, cancelled)."""
        lost: list[Claim] = []
        with self.transaction() as conn:
            now = self.now()
            for claim in claims:
                parameters = {**_fence(claim), "now": now, "lease": lease_seconds}
                if conn.execute(queries.HEARTBEAT, parameters).rowcount != 1:
                    lost.append(claim)
        return lost

    def still_owned(self, claim: Claim) -> bool:
        """Whether the claim still holds. Ask right before an effect."""
        return bool(self.read(queries.STILL_OWNED, _fence(claim)))

    # ---- ending an attempt; each returns False and changes nothing if the claim no longer holds

    def complete(self, claim: Claim, result: Mapping[str, Json] | None = None) -> bool:
        """End the attempt as done."""
        return self._finish(claim, "done", "done", None, result)

    def fail(self, claim: Claim, error: str, after_seconds: float | None = None) -> State | None:
        """End the attempt as failed: queue the job again after the kind's backoff (or `after_seconds`), or bury it
        after the last attempt. Returns the new state, None if the claim no longer holds."""
        policy = self.policies.get(claim.kind)
        if policy is None or claim.attempt >= policy.attempts:
            return "dead" if self.bury(claim, error) else None
        pause = policy.backoff_seconds(claim.attempt, self._chance) if after_seconds is None else after_seconds
        return "queued" if self._requeue(claim, "failed", error, pause, uncounted=False) else None

    def bury(self, claim: Claim, reason: str) -> bool:
        """End the job as dead: it is kept with its reason, for `retry`."""
        return self._finish(claim, "dead", "dead", reason)

    def postpone(self, claim: Claim, reason: str, seconds: float) -> bool:
        """Try again later without counting this attempt, because something outside the job was missing."""
        return self._requeue(claim, "postponed", reason, seconds, uncounted=True)

    def release(self, claim: Claim) -> bool:
        """Release the job at once, without counting the attempt, because the worker is leaving."""
        return self._requeue(claim, "released", "the worker was stopped", 0.0, uncounted=True)

    def _requeue(self, claim: Claim, outcome: str, error: str, pause: float, *, uncounted: bool) -> bool:
        run_at = self.now() + pause
        with self.transaction() as conn:
            if claim.unique_key is not None:
                key = {"unique_key": claim.unique_key}
                if successor := conn.execute(queries.QUEUED_BY_KEY, key).fetchone():
                    # The same work was enqueued meanwhile: that job takes over, including the failed attempts.
                    attempt = claim.attempt - uncounted
                    inherit = {"id": successor[0], "attempt": attempt, "run_at": run_at if pause else 0.0}
                    reason = f"{error} (continued by job {successor[0]})"
                    is_ended = self._finish(claim, "cancelled", outcome, reason)
                    if is_ended:
                        conn.execute(queries.INHERIT_ATTEMPTS, inherit)
                    return is_ended
            return self._end(queries.REQUEUE, claim, outcome, error, None, run_at=run_at, uncounted=int(uncounted))

    def _finish(
        self,
        claim: Claim,
        state: State,
        outcome: str,
        error: str | None,
        result: Mapping[str, Json] | None = None,
    ) -> bool:
        return self._end(queries.FINISH, claim, outcome, error, result, state=state)

    def _end(
        self, query: str, claim: Claim, outcome: str, error: str | None, result: object, **parameters: object
    ) -> bool:
        parameters |= {
            **_fence(claim),
            "now": self.now(),
            "outcome": outcome,
            "error": None if error is None else error_text(error),
            "result": json.dumps(result, separators=(",", ":")),
        }
        with self.transaction() as conn:
            if conn.execute(query, parameters).rowcount != 1:
                return False
            self._wake_after_commit = True
            return True

    # ---- commands of the user

    def cancel(self, job_id: int, reason: str = "cancelled by the user") -> Job:
        """Cancel a queued or running job; the owner of a running one then stops its child.

        Raises JobNotFound, JobStateRefused if it has already ended.
        """
        with self.transaction(durable=True) as conn:
            job = self.get(job_id)
            parameters: dict[str, Any] = {
                "id": job_id,
                "now": self.now(),
                "outcome": "cancelled",
                "error": reason,
                "result": "null",
            }
            if not (
                conn.execute(queries.CANCEL_QUEUED, parameters).rowcount
                or conn.execute(queries.CANCEL_RUNNING, parameters).rowcount
            ):
                raise JobStateRefused(f"job {job_id} is {job.state}: only queued and running ones can be cancelled")
            self._wake_after_commit = True  # The worker checks whether its claims still hold.
            return self.get(job_id)

    def retry(self, job_id: int) -> Job:
        """Queue a dead or cancelled job again with all its attempts; its history is kept.

        Raises JobNotFound, JobStateRefused if it is in another state or its key is queued already.
        """
        with self.transaction(durable=True) as conn:
            job = self.get(job_id)
            if job.state not in ("dead", "cancelled"):
                raise JobStateRefused(f"job {job_id} is {job.state}: only dead and cancelled ones can be retried")
            if job.unique_key is not None:
                key = {"unique_key": job.unique_key}
                if waiting := conn.execute(queries.QUEUED_BY_KEY, key).fetchone():
                    raise JobStateRefused(f"job {waiting[0]} already waits to do the same as job {job_id}")
            conn.execute(queries.REPLAY, {"id": job_id, "now": self.now()})
            self._wake_after_commit = True
            return self.get(job_id)

    def retry_dead(self, kind: str | None = None) -> tuple[list[Job], list[str]]:
        """Call `retry` for every dead job, or those of `kind`; return the queued jobs and the refusals."""
        again, refused = [], []
        for job in self.list_jobs(["dead"], kind=kind, most=MAX_DEAD):
            try:
                again.append(self.retry(job.id))
            except JobStateRefused as error:
                refused.append(str(error))
        return again, refused

    def pause(self, kind: str) -> None:
        """Start no more jobs of this kind; running ones continue. Raises ArgsInvalid for an unknown kind."""
        self._known(kind)
        with self.transaction(durable=True) as conn:
            conn.execute(queries.PAUSE_KIND, {"kind": kind, "now": self.now()})

    def resume(self, kind: str) -> None:
        """Undo `pause`."""
        self._known(kind)
        with self.transaction(durable=True) as conn:
            conn.execute(queries.RESUME_KIND, {"kind": kind})
            self._wake_after_commit = True

    def paused(self) -> list[str]:
        """Return the paused kinds."""
        return [row[0] for row in self.read(queries.PAUSED_KINDS)]

    def _known(self, kind: str) -> None:
        if kind not in self.policies:
            raise ArgsInvalid(f"no such job kind: {kind!r}")

    # ---- upkeep

    def requeue_expired(self, held: Collection[str] = (), *, all_held_elsewhere: bool = False) -> list[int]:
        """Requeue running jobs whose lease has expired, except those of the owners `held`; with `all_held_elsewhere`
        also jobs with a valid lease, for a caller who knows that their owners are gone. The lost attempt counts: after
        the last one the job is dead. Returns the ids."""
        lost: list[int] = []
        parameters = {
            "held": json.dumps(list(held)),
            "all_others": all_held_elsewhere,
            "now": self.now(),
            "longest_lease": LONGEST_LEASE_SECONDS,
        }
        if not self.read(queries.EXPIRED, parameters):
            return lost
        with self.transaction() as conn:
            for job_id, kind, unique_key, owner, attempt in conn.execute(queries.EXPIRED, parameters).fetchall():
                claim = Claim(job_id, kind, "", unique_key, attempt, owner)
                policy = self.policies.get(kind)
                error = f"the worker died or lost its lease in attempt {attempt}"
                if policy is None or attempt >= policy.attempts:
                    self._finish(claim, "dead", "lost", error)
                else:
                    self._requeue(claim, "lost", error, 0.0, uncounted=False)
                lost.append(job_id)
        return lost

    def follow_clock(self) -> int:
        """Correct times in the future after the clock was set back; return the number of jobs."""
        parameters = {"now": self.now(), "tolerance": CLOCK_TOLERANCE_SECONDS, "longest": LONGEST_WAIT_SECONDS}
        with self.transaction() as conn:
            moved = conn.execute(queries.PULL_FROM_FUTURE, parameters).rowcount
            return moved + conn.execute(queries.PULL_TIME_FROM_FUTURE, parameters).rowcount

    def advance(self, within_seconds: float) -> int:
        """Make jobs due that would be within that time, unless they wait after a failure."""
        with self.transaction() as conn:
            parameters = {"now": self.now(), "within": within_seconds}
            return conn.execute(queries.ADVANCE, parameters).rowcount

    def prune(self, older_than_seconds: float) -> int:
        """Delete the done and cancelled jobs that ended before that time; dead ones stay."""
        with self.transaction() as conn:
            return conn.execute(queries.PRUNE, {"before": self.now() - older_than_seconds}).rowcount

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Empty the ended jobs whose texts (arguments, key, history, error) match."""
        with self.transaction(durable=True) as conn:
            conn.execute("PRAGMA secure_delete = ON")
            for job_id, texts in conn.execute(queries.TEXTS_OF_ENDED).fetchall():
                if is_forgotten(texts):
                    conn.execute(queries.EMPTY, {"id": job_id})

    def beat(self, pid: int) -> None:
        """Record that the worker is alive."""
        with self.transaction() as conn:
            conn.execute(queries.BEAT, {"pid": pid, "now": self.now()})

    # ---- queries

    def get(self, job_id: int) -> Job:
        """Return a job. Raises JobNotFound."""
        rows = self.read(queries.GET_JOB, {"id": job_id})
        if not rows:
            raise JobNotFound(f"there is no job {job_id}: see `memory jobs list`")
        return job_from_row(rows[0])

    def list_jobs(self, states: Iterable[State] = STATES, *, kind: str | None = None, most: int = 100) -> list[Job]:
        """Return the newest jobs in these states, newest first."""
        parameters = {"states": json.dumps(list(states)), "kind": kind, "most": most}
        return [job_from_row(row) for row in self.read(queries.LIST_JOBS, parameters)]

    def backlog(self) -> Backlog:
        """Return counts of unfinished and dead jobs, without reading finished ones."""
        return Backlog(*self.read(queries.BACKLOG, {"now": self.now()})[0])

    def worker(self) -> WorkerBeat | None:
        """Return the last worker's last beat."""
        rows = self.read(queries.WORKER)
        return WorkerBeat(*rows[0]) if rows else None

    def is_worker_silent(self, lease_seconds: float) -> bool:
        """Whether the last worker has missed its beats, of which there are three per lease.

        An old beat alone proves nothing (the machine may have slept, or the clock jumped), so this waits for longer
        than the pause between two beats and checks again. Raises QueueUnavailable.
        """
        first = self.worker()
        if first is None or 0 <= self.now() - first.beat_at <= lease_seconds:
            return False
        time.sleep(lease_seconds / 3 * 1.5)
        second = self.worker()
        return second is not None and second.beat == first.beat

    def is_busy(self) -> bool:
        """Whether a job is running, or due and of a kind that is not paused."""
        backlog = self.backlog()
        return bool(backlog.running or backlog.due)


def _fence(claim: Claim) -> dict[str, Any]:
    return {"id": claim.job_id, "owner": claim.owner, "attempt": claim.attempt}
