"""The worker's dispatcher: reads the spool, runs schedules, and repairs the ledger after deaths of workers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from huey.consumer import BaseProcess

from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from .ledger import Ledger
from .scheduler import Scheduler
from .spool import Spool
from .wakeup import Wakeup
from .worklog import Lasting

log = logging.getLogger(__name__)

SCHEDULE_SECONDS = 5.0


@dataclass(frozen=True)
class Clockwork:
    """The parts that a dispatcher drives; kept when a dead dispatcher is replaced."""

    ledger: Ledger
    wakeup: Wakeup
    spool: Spool
    scheduler: Scheduler
    held: Callable[[], Collection[str]]
    """Returns the owners of attempts in this process, whose leases only the heartbeat manages."""
    closed: Callable[[], bool]
    """True while nothing may start: switched off, or the worker is leaving."""
    check: Callable[[], None]
    """Called at each reconciliation; may tell the worker to leave."""
    poll_seconds: float
    reconcile_seconds: float


def reconcile(ledger: Ledger, held: Collection[str] = (), *, sole: bool = False) -> None:
    """Requeue expired leases, except for those of the owners `held`, and correct times after the clock was set back.

    `sole`: the worker's lock was free, so every lease holder is dead; no need to wait.
    """
    moved = ledger.follow_clock()
    requeued = ledger.requeue_expired(held, all_held_elsewhere=sole)
    kill_point("reconciler")
    if moved or requeued:
        log.warning("repaired: %d jobs of dead workers, %d times in the future", len(requeued), moved)


class Dispatcher(BaseProcess):  # type: ignore[misc]
    """Runs as the scheduler process of huey's consumer.

    It takes a turn at least every `poll_seconds`, and at once when it is woken.
    """

    process_name = "Dispatcher"

    def __init__(self, huey: object, stop_flag: threading.Event, clockwork: Clockwork) -> None:
        super().__init__(huey, stop_flag)
        self._clockwork = clockwork
        now = time.monotonic()
        self._next_schedule = now
        self._next_reconciliation = now + clockwork.reconcile_seconds
        self._away = Lasting(log)

    def loop(self, now: object = None) -> None:
        """Take one turn, then wait."""
        calls = self._clockwork.wakeup.calls
        try:
            self._turn()
            self._away.is_over()
        except QueueUnavailable as error:
            self._away.is_so(f"dispatcher waits: {error}")
        except Exception:
            log.exception("dispatcher failed; it goes on")
        if not self.stop_flag.is_set():
            self._clockwork.wakeup.wait(calls, self._clockwork.poll_seconds)

    def _turn(self) -> None:
        parts, now = self._clockwork, time.monotonic()
        if now >= self._next_reconciliation:
            self._next_reconciliation = now + parts.reconcile_seconds
            parts.check()
            reconcile(parts.ledger, parts.held())
            parts.ledger.checkpoint()
        if parts.closed():
            return
        parts.spool.ingest()
        if now >= self._next_schedule:
            self._next_schedule = now + SCHEDULE_SECONDS
            parts.scheduler.tick()
