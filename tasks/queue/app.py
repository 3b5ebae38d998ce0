"""The huey application: every job runs as huey's task `run(claim)`.

huey provides the consumer, its worker threads and their supervision. The ledger decides what runs: `dequeue` claims a
job there, in one transaction, so a killed worker leaves a lease that expires.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from huey.api import Huey, Task
from huey.consumer import BaseProcess, Consumer
from huey.storage import BlackHoleStorage

from ...runtime.errors import QueueUnavailable
from .records import Claim
from .wakeup import Wakeup
from .worklog import Lasting

log = logging.getLogger(__name__)

DRAIN_POLL_SECONDS = 0.05
ABANDON_SECONDS = 3.0


class NoStorage(BlackHoleStorage):  # type: ignore[misc]
    """huey stores nothing: jobs, their results and revocations are in the ledger."""

    blocking = True  # `dequeue` waits; huey's own polling backs off to ten seconds.


class VaultHuey(Huey):  # type: ignore[misc]
    """huey with one task, whose `dequeue` claims a job in the ledger and waits for a wake-up."""

    def __init__(
        self,
        run: Callable[[Claim], None],
        take: Callable[[], Claim | None],
        wakeup: Wakeup,
        poll_seconds: float,
    ) -> None:
        """`take` claims the next job; it returns None if there is none, or nothing may start."""
        super().__init__("memoryvault", results=False, storage_class=NoStorage)
        self._run = self.task(name="run")(run)
        self._take = take
        self.wakeup = wakeup
        self.poll_seconds = poll_seconds
        self._away = Lasting(log)

    def dequeue(self) -> Task | None:
        """Return a task that runs the next job; None if there is none after a wake-up or `poll_seconds`."""
        calls, claim = self.wakeup.calls, None
        try:
            claim = self._take()
            self._away.is_over()
        except QueueUnavailable as error:
            self._away.is_so(f"can't take a job: {error}")
        if claim is not None:
            return self._run.s(claim)
        self.wakeup.wait(calls, self.poll_seconds)
        return None


class Dispatcher(BaseProcess):  # type: ignore[misc]
    """Takes turns in place of huey's scheduler, at least every `poll_seconds`, and at once when it is woken."""

    process_name = "Dispatcher"

    def __init__(self, huey: VaultHuey, stop_flag: threading.Event, turn: Callable[[], None]) -> None:
        super().__init__(huey, stop_flag)
        self._turn = turn
        self._away = Lasting(log)

    def loop(self, now: object = None) -> None:
        """Take one turn, then wait."""
        calls = self.huey.wakeup.calls
        try:
            self._turn()
            self._away.is_over()
        except QueueUnavailable as error:
            self._away.is_so(f"dispatcher waits: {error}")
        except Exception:
            log.exception("dispatcher failed; it goes on")
        if not self.stop_flag.is_set():
            self.huey.wakeup.wait(calls, self.huey.poll_seconds)


class ThreadConsumer(Consumer):  # type: ignore[misc]
    """huey's consumer with our dispatcher, which calls `turn`; the worker handles signals."""

    def __init__(self, huey: VaultHuey, *, workers: int, turn: Callable[[], None]) -> None:
        self._turn = turn
        super().__init__(huey, workers=workers, periodic=False, worker_type="thread")

    def _create_scheduler(self) -> Dispatcher:
        return Dispatcher(self.huey, self.stop_flag, self._turn)

    def _set_signal_handlers(self) -> None:
        pass

    def halt(self) -> None:
        """Start nothing more; each thread ends after the job it runs."""
        self.stop_flag.set()
        self.huey.wakeup.wake()  # So that the threads check whether they are to end.

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
