"""The worker's second loop: it claims from the shared queue, beside the loop over its own.

Neither waits for the other. While the database is away this one tries again ever later and the worker does all else.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from huey.consumer import BaseProcess

from ... import __version__
from ...runtime.days import SECONDS_PER_DAY
from ...runtime.errors import QueueUnavailable
from ..queue.app import Claiming, ThreadConsumer, VaultHuey
from ..queue.doorbell import Chime
from ..queue.executor import Executor, Tally
from ..queue.job import Handler
from ..queue.ledger import Ledger
from ..queue.reconciler import Reconciler
from .content import KEPT_SECONDS
from .ledger import PostgresLedger
from .storage import SharedStorage

log = logging.getLogger(__name__)

POLL_SECONDS = 5.0
"""How often it looks for jobs that no notification told it of."""
LONGEST_PAUSE_SECONDS = 60.0
"""Between two attempts to reach a database that was never there."""
CHECK_SECONDS = 300.0
PATIENCE_SECONDS = 0.5
UPKEEP_SECONDS = 3600.0
HISTORY_DAYS = 7
"""Jobs that ended well, or were cancelled, so long ago are deleted: what came of them is on the machines."""
SILENT_DAYS = 7
"""A worker that gave no sign for so long is forgotten."""
PRUNE_JOBS = 2000

MakeHandlers = Callable[[Ledger, PostgresLedger], Mapping[str, Handler]]
"""The handlers of the shared kinds, for this machine's own ledger and the shared one."""
Upkeep = Callable[[PostgresLedger], None]


@dataclass(frozen=True)
class LoopContext:
    """How the loop works."""

    open_ledger: Callable[[Callable[[], None]], PostgresLedger]
    """Makes the ledger with that bell, not connected yet. Raises QueueUnavailable if it never can be."""
    machine: str
    stopped: Callable[[], bool]
    """True while nothing may start: the STOP file."""
    tell: Callable[[bool, str], None] = lambda reached, why: None
    """Told whether the database is reached, and why it is not; called again and again."""
    workers: int = 2
    lease_seconds: float = 30.0
    drain_seconds: float = 20.0
    poll_seconds: float = POLL_SECONDS

    @property
    def reconcile_seconds(self) -> float:
        """Between two passes of the reconciler."""
        return self.lease_seconds / 3


class SharedLoop:
    """Runs jobs of the shared queue while the worker lives. `start` returns at once, whatever the network does."""

    def __init__(self, context: LoopContext, make_handlers: MakeHandlers, upkeep: Upkeep = lambda ledger: None) -> None:
        self._context = context
        self._make_handlers = make_handlers
        self._upkeep = upkeep
        self._leaving = threading.Event()
        self._settled = threading.Event()
        """The first attempt to reach the database has ended, well or not."""
        self._owner = f"{context.machine}:{os.getpid()}:{secrets.token_hex(4)}"
        self._claim_numbers = itertools.count(1)
        self._thread: threading.Thread | None = None
        self._ledger: PostgresLedger | None = None
        self._executor: Executor | None = None
        self._tally = Tally()
        self._consumer: ThreadConsumer | None = None

    # ---- the worker's side

    def start(self, ledger: Ledger) -> None:
        """Begin to reach for the database, in a thread of its own."""
        # New ones: a thread of an earlier start may still be connecting, and must not be taken for this one's.
        self._leaving, self._settled = threading.Event(), threading.Event()
        arguments = (ledger, self._leaving, self._settled)
        self._thread = threading.Thread(target=self._begin, args=arguments, name="shared-queue", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Start nothing more. Does not wait."""
        self._leaving.set()
        if self._consumer is not None:
            self._consumer.halt()

    def stop(self) -> None:
        """Wait for what runs, as long as the worker does; then give it back."""
        self.leave()
        if self._thread is not None:
            # One that is still connecting holds nothing and ends by itself.
            self._thread.join(PATIENCE_SECONDS if self._consumer is None else self._context.drain_seconds + 10.0)

    def check_health(self) -> None:
        """Replace threads that have died."""
        if self._consumer is not None and not self._leaving.is_set():
            self._consumer.check_worker_health()

    def is_busy(self) -> bool:
        """Whether something runs, or there is something to claim; False while the database is away."""
        if not self._settled.is_set():
            return True
        ledger, executor = self._ledger, self._executor
        if ledger is None or executor is None:
            return False
        try:
            # In this order: what is claimed in between is seen to run. (The executor knows of it a moment later.)
            return ledger.has_doorbell() or ledger.runs_for(self._owner)
        except QueueUnavailable:
            return bool(executor.running())

    def outcomes(self) -> Counter[str]:
        """How its attempts have ended, as the executor counts them."""
        return self._tally.outcomes

    # ---- its own thread

    def _begin(self, local: Ledger, leaving: threading.Event, settled: threading.Event) -> None:
        try:
            self._serve(local, leaving, settled)
        except Exception:
            log.exception("the shared queue is given up until the worker starts again")
        finally:
            settled.set()

    def _serve(self, local: Ledger, leaving: threading.Event, settled: threading.Event) -> None:
        bell = Chime()
        try:
            ledger = self._context.open_ledger(bell.ring)
        except QueueUnavailable as error:
            log.warning("%s", error)
            self._context.tell(False, str(error))
            return
        try:
            if self._reached(ledger, leaving, settled):
                try:
                    self._run(local, ledger, bell)
                finally:
                    self._ledger = self._executor = self._consumer = None
        finally:
            ledger.close()

    def _reached(self, ledger: PostgresLedger, leaving: threading.Event, settled: threading.Event) -> bool:
        """Try until the database is there; False if the worker left before."""
        said, pause = "", 1.0
        while not leaving.is_set():
            try:
                ledger.connect()
                return not leaving.is_set()
            except QueueUnavailable as error:
                self._context.tell(False, str(error))
                if str(error) != said:
                    said = str(error)
                    log.warning("%s; everything else goes on", said)
            settled.set()
            leaving.wait(pause)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
        return False

    def _run(self, local: Ledger, ledger: PostgresLedger, bell: Chime) -> None:
        context = self._context
        executor = Executor(ledger, self._make_handlers(local, ledger), context.lease_seconds)
        huey = VaultHuey(
            executor.run,
            SharedStorage,
            ledger=ledger,
            claiming=Claiming(
                bell=bell,
                owner=lambda: f"{self._owner}-{next(self._claim_numbers)}",
                lease_seconds=context.lease_seconds,
                poll_seconds=context.poll_seconds,
                closed=self._closed,
            ),
            machine=context.machine,
        )
        consumer = ThreadConsumer(
            huey,
            workers=context.workers,
            dispatcher=lambda stop: SharedDispatcher(huey, stop, self._turns(ledger, executor), bell, context),
        )
        self._ledger, self._executor, self._tally = ledger, executor, executor.tally
        executor.start_heart(lambda: ledger.beat(self._owner, os.getpid(), __version__))
        storage = cast(SharedStorage, huey.storage)
        if ledger.is_pooled:
            log.info("the shared queue is behind a pooler: jobs are looked for every %g s", context.poll_seconds)
        else:
            storage.start_listening()
        consumer.start()
        self._consumer = consumer  # Not before: a thread that has not begun looks as if it had died.
        self._settled.set()
        log.info("the shared queue is reached: %s", ledger.address.where)
        self._leaving.wait()
        consumer.drain(context.drain_seconds, executor.abandon)
        storage.stop_listening()
        executor.stop_heart()
        try:
            ledger.forget_worker(self._owner)
        except QueueUnavailable:
            log.debug("the beat stays until it is old")

    def _closed(self) -> bool:
        return self._leaving.is_set() or self._context.stopped()

    def _turns(self, ledger: PostgresLedger, executor: Executor) -> Turns:
        reconciler = Reconciler(ledger, lambda: [job.claim.owner for job in executor.running()])
        return Turns(ledger, reconciler, self._closed, self._upkeep)


@dataclass(frozen=True)
class Turns:
    """What a dispatcher does, and when not."""

    ledger: PostgresLedger
    reconciler: Reconciler
    closed: Callable[[], bool]
    upkeep: Upkeep

    def ring(self) -> None:
        """Ring for what has become due."""
        if not self.closed():
            self.ledger.ring_due()

    def repair(self) -> None:
        """Take back what others have lost. Raises QueueUnavailable if a newer package has the database."""
        self.ledger.check_schema()
        self.reconciler.requeue()

    def check(self) -> None:
        """Look for what should never be, over the whole queue: many workers do it, so each does it seldom."""
        self.reconciler.run()

    def tidy(self) -> None:
        """Delete what nobody asks for any more."""
        self.ledger.prune(HISTORY_DAYS * SECONDS_PER_DAY, PRUNE_JOBS)
        self.ledger.drop_stale(KEPT_SECONDS, PRUNE_JOBS)
        self.ledger.forget_silent_workers(SILENT_DAYS * SECONDS_PER_DAY)
        self.upkeep(self.ledger)


class SharedDispatcher(BaseProcess):  # type: ignore[misc]
    """Runs as the scheduler process of the loop's consumer."""

    process_name = "SharedDispatcher"

    def __init__(
        self, huey: object, stop_flag: threading.Event, turns: Turns, bell: Chime, context: LoopContext
    ) -> None:
        super().__init__(huey, stop_flag)
        self._turns = turns
        self._bell = bell
        self._tell = context.tell
        self._poll_seconds = context.poll_seconds
        self._reconcile_seconds = context.reconcile_seconds
        self._next_repair = self._next_check = self._next_tidy = time.monotonic()

    def loop(self, now: object = None) -> None:
        """One turn; then wait."""
        rings = self._bell.rings
        try:
            self._turn(time.monotonic())
            self._tell(True, "")
        except QueueUnavailable as error:
            self._tell(False, str(error))  # Those who claim say so in the log.
        except Exception:
            log.exception("the shared queue's dispatcher failed; it goes on")
        if not self.stop_flag.is_set():
            self._bell.wait(rings, self._poll_seconds)

    def _turn(self, now: float) -> None:
        if now >= self._next_repair:
            self._next_repair = now + self._reconcile_seconds
            self._turns.repair()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS * random.uniform(0.5, 1.5)
            self._turns.check()
        self._turns.ring()
        if now >= self._next_tidy:
            self._next_tidy = now + UPKEEP_SECONDS
            self._turns.tidy()
