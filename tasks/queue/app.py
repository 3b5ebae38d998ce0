"""The huey application: every job runs as huey's task `memoryvault.run(job_id)`.

huey provides the consumer, its worker threads and their supervision; the ledger decides what runs. So the storage
takes a message off huey's table in the transaction that claims the job: a killed worker leaves a lease that expires,
never a lost message.
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
from .schema import QUEUE_NAME, TASK_NAME
from .wakeup import Wakeup

log = logging.getLogger(__name__)

DRAIN_POLL_SECONDS = 0.05
ABANDON_SECONDS = 3.0
_FIELDS = ("id", "name", "args", "priority")


class JsonSerializer(Serializer):  # type: ignore[misc]
    """Stores huey's messages as JSON: with pickle, anybody who can write the file could run code in the worker."""

    def _serialize(self, data: object) -> bytes:
        if not isinstance(data, Message):
            raise TypeError(f"only huey messages are stored, not {type(data).__name__}")
        fields = {name: getattr(data, name) for name in _FIELDS if getattr(data, name)}
        return json.dumps(fields, separators=(",", ":")).encode()

    def _deserialize(self, data: bytes | memoryview) -> Message:
        # The job is claimed already: fields that another version adds must not make huey fail here.
        fields = json.loads(bytes(data))
        return Message(id=fields["id"], name=fields["name"], args=tuple(fields["args"][:1]))


@dataclass(frozen=True)
class Claiming:
    """How a storage claims jobs."""

    wakeup: Wakeup
    owner: Callable[[], str]
    """Returns a new owner for each claim."""
    lease_seconds: float
    poll_seconds: float
    closed: Callable[[], bool]
    """True while nothing may start."""


class LedgerStorage(SqliteStorage):  # type: ignore[misc]
    """huey's SQLite storage in queue.db, whose `dequeue` claims the job in the ledger and waits for a wake-up."""

    blocking = True  # `dequeue` waits; huey's own polling backs off to ten seconds.

    def __init__(self, name: str, *, ledger: Ledger, claiming: Claiming) -> None:
        # schema.py creates the tables: huey's own DDL would take an exclusive lock at every start.
        super().__init__(name, filename=str(ledger.path), create_tables=False, fsync=True)
        self._ledger = ledger
        self._wakeup = claiming.wakeup
        self._owner = claiming.owner
        self._lease_seconds = claiming.lease_seconds
        self._poll_seconds = claiming.poll_seconds
        self._closed = claiming.closed
        self._claims: dict[int, Claim] = {}
        self._claims_lock = threading.Lock()
        self._away = False

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        super().enqueue(data, priority)
        self._wakeup.wake()

    def dequeue(self) -> bytes | None:
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
            if not self._was_away(True):  # One warning, not one for each thread at each look.
                log.warning("can't take a job: %s", error)
            return None
        if self._was_away(False):
            log.warning("jobs can be taken again")
        return taken

    def _was_away(self, now: bool) -> bool:
        with self._claims_lock:
            before, self._away = self._away, now
        return before

    def wake(self) -> None:
        """Make the threads check whether they are to end."""
        self._wakeup.wake()

    def pop_claim(self, job_id: int) -> Claim | None:
        """Return the claim that came with this job's message, once."""
        with self._claims_lock:
            return self._claims.pop(job_id, None)

    def delete_data(self, key: str) -> bool:
        return False  # huey deletes a revocation after every task; here the ledger cancels.


class VaultHuey(Huey):  # type: ignore[misc]
    """huey with one task and without results, which are in the ledger."""

    storage: LedgerStorage

    def __init__(self, run: Callable[[Claim], None], *, ledger: Ledger, claiming: Claiming) -> None:
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
                run(claim)

        run_job.__module__, name = TASK_NAME.split(".")  # huey names a task <module>.<name>
        self.task(name=name)(run_job)

    def is_revoked(self, *_: object, **__: object) -> bool:
        return False  # Saves a query per job: see `delete_data`.


class ThreadConsumer(Consumer):  # type: ignore[misc]
    """huey's consumer with our dispatcher in place of its scheduler; the worker handles signals."""

    def __init__(self, huey: VaultHuey, *, workers: int, dispatcher: Callable[[Any], BaseProcess]) -> None:
        self._make_dispatcher = dispatcher
        super().__init__(huey, workers=workers, periodic=False, worker_type="thread")

    def _create_scheduler(self) -> BaseProcess:
        return self._make_dispatcher(self.stop_flag)

    def _set_signal_handlers(self) -> None:
        pass

    def halt(self) -> None:
        """Start nothing more; each thread ends after the job it runs."""
        self.stop_flag.set()
        self.huey.storage.wake()

    def drain(self, seconds: float, abandon: Callable[[], int], hurried: Callable[[], bool] = lambda: False) -> None:
        """Call `halt`, wait for running jobs until the time is over or `hurried` holds, then `abandon` them."""
        self.halt()
        until = time.monotonic() + seconds
        while not self._join_threads(DRAIN_POLL_SECONDS):
            if time.monotonic() > until or hurried():
                log.warning("leaving: %d running jobs are stopped and given back", abandon())
                self._join_threads(ABANDON_SECONDS)
                break

    def _join_threads(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        threads = [self.scheduler, *(thread for _, thread in self.worker_threads)]
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)
