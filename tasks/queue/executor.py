"""Runs claimed jobs in the consumer's threads, keeps their leases alive and records how they ended."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

from ...runtime.errors import IndexUnavailable, ModelUnavailable, QueueUnavailable, VaultUnavailable
from ...runtime.json_text import parse_json
from ...runtime.killpoint import kill_point
from .job import Dead, Handler, JobLost, Postpone, Retry, RunningJob
from .kinds import ArgsInvalid, validate_args
from .ledger import Ledger
from .records import Claim
from .worklog import Lasting

log = logging.getLogger(__name__)

RECORD_RETRY_SECONDS = 0.25
RECORD_GIVE_UP_SECONDS = 120.0
POSTPONE_SECONDS = 30.0
_FULL_OR_READ_ONLY = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class Executor:
    """Runs claims with the handlers; one per worker."""

    def __init__(self, ledger: Ledger, handlers: Mapping[str, Handler], lease_seconds: float) -> None:
        self.outcomes: Counter[str] = Counter()
        """How attempts ended: done, retried, dead, postponed, lost."""
        self._ledger = ledger
        self._handlers = handlers
        self._lease_seconds = lease_seconds
        self._lock = threading.Lock()
        self._running: dict[str, RunningJob] = {}
        self._beat_now = threading.Event()
        self._heart: threading.Thread | None = None

    # ---- running

    def run(self, claim: Claim) -> None:
        """Run one claimed attempt and record how it ended. Raises nothing."""
        kill_point("after-claim")
        try:
            job = self._prepare(claim)
        except ArgsInvalid as error:
            self._bury(claim, str(error))
            return
        with self._lock:
            self._running[claim.owner] = job
        try:
            self._attempt(job, self._handlers[claim.kind])
        finally:
            with self._lock:
                self._running.pop(claim.owner, None)

    def _prepare(self, claim: Claim) -> RunningJob:
        policy = self._ledger.policies.get(claim.kind)
        if policy is None or claim.kind not in self._handlers:
            raise ArgsInvalid(f"this version has no job kind {claim.kind!r}")
        try:
            args = parse_json(claim.args)
        except ValueError as error:
            raise ArgsInvalid(f"arguments are not JSON: {error}") from error
        return RunningJob(self._ledger, claim, validate_args(claim.kind, args, self._ledger.policies), policy)

    def _attempt(self, job: RunningJob, handler: Handler) -> None:
        claim, ledger = job.claim, self._ledger
        try:
            result = handler(job)
            kill_point("before-completion")
            job.ending = True
            self._record(claim, "done", ledger.complete, result)
        except JobLost:
            self._count("lost")
        except Dead as error:
            self._bury(claim, str(error))
        except Retry as error:
            self._fail(claim, str(error), error.after_seconds)
        except Postpone as error:
            self._record(claim, "postponed", ledger.postpone, str(error), error.seconds)
        except (VaultUnavailable, IndexUnavailable, ModelUnavailable, QueueUnavailable) as error:
            self._record(claim, "postponed", ledger.postpone, str(error), POSTPONE_SECONDS)
        except BaseException as error:  # SystemExit of a handler must not end the consumer's thread.
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.errno in _FULL_OR_READ_ONLY:
                self._record(claim, "postponed", ledger.postpone, reason, POSTPONE_SECONDS)
            elif job.lost.is_set():
                self._count("lost")
            else:
                log.exception("job %d (%s) failed", job.id, job.kind)
                self._fail(claim, reason, None)

    def _bury(self, claim: Claim, reason: str) -> None:
        log.warning("job %d (%s) failed for good: %s", claim.job_id, claim.kind, reason)
        self._record(claim, "dead", self._ledger.bury, reason)

    def _fail(self, claim: Claim, reason: str, after_seconds: float | None) -> None:
        policy = self._ledger.policies[claim.kind]
        outcome = "dead" if claim.attempt >= policy.attempts else "retried"
        log.warning("job %d (%s), attempt %d: %s", claim.job_id, claim.kind, claim.attempt, reason)
        self._record(claim, outcome, self._ledger.fail, reason, after_seconds)

    def _record(self, claim: Claim, outcome: str, end: Callable[..., object], *how: object) -> None:
        """End an attempt by `end(claim, *how)`, and retry for RECORD_GIVE_UP_SECONDS where queue.db is locked."""
        give_up = time.monotonic() + RECORD_GIVE_UP_SECONDS
        while True:
            try:
                if not end(claim, *how):
                    log.warning("job %d: attempt %d is no longer ours, result dropped", claim.job_id, claim.attempt)
                    outcome = "lost"
                break
            except QueueUnavailable as error:
                if time.monotonic() > give_up or self._ledger.damaged:
                    # The lease expires and the job runs again, without effect.
                    log.error("job %d: can't record that it is %s: %s", claim.job_id, outcome, error)
                    outcome = "lost"
                    break
                time.sleep(RECORD_RETRY_SECONDS)
        self._count(outcome)

    def _count(self, outcome: str) -> None:
        with self._lock:
            self.outcomes[outcome] += 1

    # ---- what runs

    def running(self) -> list[RunningJob]:
        """Return the attempts in progress."""
        with self._lock:
            return list(self._running.values())

    def abandon(self) -> int:
        """Release the running jobs, stop their children, and return how many there were."""
        jobs = self.running()
        for job in jobs:
            try:
                self._ledger.release(job.claim)
            except QueueUnavailable as error:
                log.warning("job %d keeps its lease until it expires: %s", job.id, error)
            job.lost.set()
        return len(jobs)

    # ---- the heart

    def start_heart(self, beat: Callable[[], None]) -> None:
        """Start a thread that extends leases and calls `beat` three times per lease."""
        self._heart = threading.Thread(target=self._beat_forever, args=(beat,), name="heart", daemon=True)
        self._heart_stopped = threading.Event()
        self._heart.start()

    def stop_heart(self) -> None:
        """End that thread."""
        if self._heart is not None:
            self._heart_stopped.set()
            self._beat_now.set()
            self._heart.join(timeout=5.0)

    def check_soon(self) -> None:
        """Check now whether a running job was cancelled, instead of at the next heartbeat."""
        if self._running:
            self._beat_now.set()

    def _beat_forever(self, beat: Callable[[], None]) -> None:
        away = Lasting(log)
        while not self._heart_stopped.is_set():
            try:
                beat()
                self.extend_leases()
                away.is_over()
            except QueueUnavailable as error:
                away.is_so(f"heartbeat failed: {error}")
            except Exception:
                log.exception("heartbeat failed")
            self._beat_now.wait(self._lease_seconds / 3)
            self._beat_now.clear()

    def extend_leases(self) -> None:
        """Extend the leases once, notice lost claims, and give up attempts far past their deadline."""
        jobs = self.running()
        for job in jobs:
            if job.overdue and not job.lost.is_set():
                reason = f"did not end at its deadline of {job.policy.deadline_seconds:.0f} s"
                if self._ledger.fail(job.claim, reason):
                    self._count("lost")
                job.lost.set()  # After `fail`: a handler that waits for it must not end the attempt first.
        kept = [job for job in jobs if not job.lost.is_set()]
        if not kept:
            return
        lost = {claim.owner for claim in self._ledger.heartbeat((job.claim for job in kept), self._lease_seconds)}
        for job in kept:
            if job.claim.owner in lost and not job.ending and job in self.running():
                log.warning("job %d (%s) is no longer ours", job.id, job.kind)
                job.lost.set()
