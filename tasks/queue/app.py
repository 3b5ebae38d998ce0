"""The huey application: every job runs as huey's task `memoryvault.run(job_id)`.

huey brings the consumer, its worker threads and their supervision; the ledger decides what runs.  So the
storage takes a message off huey's table in the transaction that claims the job: a killed worker leaves a
lease that expires, never a message that is gone.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from huey.api import Huey
from huey.consumer import BaseProcess, Consumer
from huey.registry import Message
from huey.serializer import Serializer
from huey.storage import SqliteStorage

from ...runtime.errors import QueueUnavailable
from .ledger import Claim, Ledger
from .records import job_id_of
from .schema import QUEUE_NAME, TASK_NAME
from .wakeup import Wakeup

log = logging.getLogger(__name__)

DRAIN_POLL_SECONDS = 0.05
ABANDON_SECONDS = 3.0
_FIELDS = ("id", "name", "args", "priority")

EndAndTake = Callable[[Callable[[], bool]], bool]
"""LedgerStorage.end_and_take."""


class JsonSerializer(Serializer):  # type: ignore[misc]
    """huey's messages as JSON.  pickle would let whoever can write the file run code in the worker."""

    def _serialize(self, data: object) -> bytes:
        if not isinstance(data, Message):
            raise TypeError(f"only huey messages are stored, not {type(data).__name__}")
        fields = {name: getattr(data, name) for name in _FIELDS if getattr(data, name)}
        return json.dumps(fields, separators=(",", ":")).encode()

    def _deserialize(self, data: bytes | memoryview) -> Message:
        # A claim comes with the message: no field that another version adds may make huey fail on it.
        fields = json.loads(bytes(data))
        return Message(id=fields["id"], name=fields["name"], args=tuple(fields["args"][:1]))


@dataclass(frozen=True)
class Claiming:
    """How a storage claims: for whom, for how long, and when not."""

    wakeup: Wakeup
    owner: Callable[[], str]
    """A fresh owner for each claim."""
    lease_seconds: float
    poll_seconds: float
    closed: Callable[[], bool]
    """True while nothing may start."""


class LedgerStorage(SqliteStorage):  # type: ignore[misc]
    """huey's SQLite storage in queue.db: `dequeue` claims the job in the ledger and waits for a wake-up."""

    blocking = True  # `dequeue` waits by itself; huey's own polling backs off to ten seconds.

    def __init__(self, name: str, *, ledger: Ledger, claiming: Claiming) -> None:
        # schema.py has made the tables: huey's own DDL would take an exclusive lock at every start.
        super().__init__(name, filename=str(ledger.path), create_tables=False, fsync=True)
        self._ledger = ledger
        self._wakeup = claiming.wakeup
        self._owner = claiming.owner
        self._lease_seconds = claiming.lease_seconds
        self._poll_seconds = claiming.poll_seconds
        self._closed = claiming.closed
        self._claims: dict[int, Claim] = {}
        self._claims_lock = threading.Lock()
        self._ahead = threading.local()
        self._away = False

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        super().enqueue(data, priority)
        self._wakeup.wake()

    def dequeue(self) -> bytes | None:
        message: bytes | None = getattr(self._ahead, "message", None)
        if message is not None:
            self._ahead.message = None
            if not self._closed():
                return message
            job_id = job_id_of(message)
            claim = None if job_id is None else self.pop_claim(job_id)
            if claim is not None:
                self.give_back(claim)
        calls = self._wakeup.calls
        if not self._closed():
            taken = self._take()
            if taken is not None:
                message, claim = taken
                with self._claims_lock:
                    self._claims[claim.job_id] = claim
                return message
        self._wakeup.wait(calls, self._poll_seconds)
        return None

    def _take(self) -> tuple[bytes, Claim] | None:
        try:
            taken = self._ledger.take_message(self._owner, self._lease_seconds)
        except QueueUnavailable as error:
            if not self._was_away(True):  # Said once, not by every thread at every look.
                log.warning("can't take a job: %s", error)
            return None
        if self._was_away(False):
            log.warning("jobs can be taken again")
        return taken

    def _was_away(self, now: bool) -> bool:
        with self._claims_lock:
            before, self._away = self._away, now
        return before

    def end_and_take(self, end: Callable[[], bool]) -> bool:
        """Record the end of this thread's attempt and claim its next job in the same commit.

        Half the commits of a busy worker.  The thread comes for that job at once; should the worker leave
        before, `unstarted` has it.
        """
        taken = None
        with self._ledger.transaction():
            ended = end()
            if not self._closed():
                taken = self._ledger.take_message(self._owner, self._lease_seconds)
        if taken is not None:
            message, claim = taken
            with self._claims_lock:
                self._claims[claim.job_id] = claim
            self._ahead.message = message
        return ended

    def wake(self) -> None:
        """Let the threads look whether they are to end."""
        self._wakeup.wake()

    def unstarted(self) -> list[Claim]:
        """Claims that nobody has begun to run; once the threads have ended nobody will."""
        with self._claims_lock:
            claims = list(self._claims.values())
            self._claims.clear()
            return claims

    def give_back(self, claim: Claim) -> None:
        """Release what nobody will run here.  Never raises: its lease would expire."""
        try:
            self._ledger.release(claim)
        except QueueUnavailable as error:
            log.warning("job %d keeps its lease until it expires: %s", claim.job_id, error)

    def pop_claim(self, job_id: int) -> Claim | None:
        """The claim that came with the message of this job, once."""
        with self._claims_lock:
            return self._claims.pop(job_id, None)

    def delete_data(self, key: str) -> bool:
        return False  # huey deletes a revocation after every task; ours are cancellations in the ledger.


class VaultHuey(Huey):  # type: ignore[misc]
    """huey with one task and no results; what a job did is in the ledger."""

    storage: LedgerStorage

    def __init__(self, run: Callable[[Claim, EndAndTake], None], *, ledger: Ledger, claiming: Claiming) -> None:
        super().__init__(
            QUEUE_NAME,
            results=False,
            serializer=JsonSerializer(),
            storage_class=LedgerStorage,
            ledger=ledger,
            claiming=claiming,
        )

        def run_job(job_id: int) -> None:
            claim = self.storage.pop_claim(job_id)
            if claim is not None:
                run(claim, self.storage.end_and_take)

        run_job.__module__, name = TASK_NAME.split(".")  # huey names a task <module>.<name>
        self.task(name=name)(run_job)

    def is_revoked(self, *_: object, **__: object) -> bool:
        return False  # Saves a query per job: see `delete_data`.


class ThreadConsumer(Consumer):  # type: ignore[misc]
    """huey's consumer with our dispatcher in the place of its scheduler, and signals left to the worker."""

    def __init__(self, huey: VaultHuey, *, workers: int, dispatcher: Callable[[Any], BaseProcess]) -> None:
        self._make_dispatcher = dispatcher
        super().__init__(huey, workers=workers, periodic=False, worker_type="thread")

    def _create_scheduler(self) -> BaseProcess:
        return self._make_dispatcher(self.stop_flag)

    def _set_signal_handlers(self) -> None:
        pass

    def halt(self) -> None:
        """Start nothing more; the threads end with the job they are at."""
        self.stop_flag.set()
        self.huey.storage.wake()

    def drain(self, seconds: float, abandon: Callable[[], int], hurried: Callable[[], bool] = lambda: False) -> None:
        """`halt` and wait so long for what runs, or until `hurried`; then `abandon` it and give back the unstarted."""
        self.halt()
        until = time.monotonic() + seconds
        while not self._join_threads(DRAIN_POLL_SECONDS):
            if time.monotonic() > until or hurried():
                log.warning("leaving: %d running jobs are stopped and given back", abandon())
                self._join_threads(ABANDON_SECONDS)
                break
        storage = self.huey.storage
        for claim in storage.unstarted():
            storage.give_back(claim)

    def _join_threads(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        threads = [self.scheduler, *(thread for _, thread in self.worker_threads)]
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)
