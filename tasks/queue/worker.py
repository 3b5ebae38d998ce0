"""The worker: huey's consumer over the ledger, with its lock, heartbeat, services and shutdown."""

from __future__ import annotations

import itertools
import logging
import math
import os
import queue
import re
import secrets
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ... import __version__
from ...runtime.errors import QueueUnavailable, WorkerRunning
from ...runtime.killpoint import kill_point
from ...runtime.layout import StatePaths
from ...runtime.paths import file_identity
from ...runtime.process_lock import ProcessLock, lock_holder
from ...schedules.table import SCHEDULES, Schedule
from . import schema
from .app import ThreadConsumer, VaultHuey
from .damage import open_queue, requeue_unmined, restore_if_damaged, restore_pauses
from .enqueue import Spool
from .executor import Executor
from .job import Handler
from .kinds import POLICIES, KindPolicy
from .ledger import Ledger
from .records import LEASE_SECONDS, Claim
from .scheduler import Scheduler
from .schema import is_readable_anew
from .wakeup import Wakeup, wake_worker

log = logging.getLogger(__name__)

BUSY_SECONDS = 15.0
IDLE_POLL_SECONDS = 0.01
BEAT_SECONDS = 1.0
"""Seconds between checks whether queue.db still exists."""
REREAD_SECONDS = 5.0
"""Seconds between checks whether other processes can read queue.db."""
REPORT_SECONDS = 0.5
"""Seconds between two reports of a run until idle; a shorter run reports nothing."""
SCHEDULE_SECONDS = 5.0
HEALTH_SECONDS = 10.0
STUCK_SECONDS = 30.0
EXIT_STUCK = 75


OnLeft = Callable[[int], None]
"""Gets the number of jobs that are running or due."""
Service = Callable[[Ledger], Callable[[], None] | None]
"""Starts a part that lives as long as the worker, such as the vault's watcher, and may enqueue jobs. Returns what ends
its threads; None if it has none."""


@dataclass(frozen=True)
class WorkerContext:
    """The worker's folder, handlers' limits and timing."""

    state: StatePaths
    workers: int = 2
    poll_seconds: float = 1.0
    """Between two checks for due jobs and for the spool."""
    lease_seconds: float = LEASE_SECONDS
    drain_seconds: float = 20.0
    """How long a worker that is told to stop waits for running jobs before it releases them."""
    quiet_seconds: float = 90.0
    """Quiet period of a session whose job is recreated from its marker."""
    policies: Mapping[str, KindPolicy] = field(default_factory=lambda: POLICIES)
    schedules: Sequence[Schedule] = SCHEDULES
    enabled: bool = True
    """False: every job waits, as under a STOP file."""
    is_outdated: Callable[[], bool] = lambda: False
    """Asked every few seconds: if the context is outdated, the worker leaves, to be created anew."""

    @property
    def reconcile_seconds(self) -> float:
        """Seconds between two passes of the reconciler."""
        return min(3.0, self.lease_seconds / 3)


@dataclass(frozen=True)
class RunReport:
    """What `run_until_idle` did: attempts by outcome, and what is left."""

    delayed: int
    """Jobs still queued for a later time."""
    timed_out: bool
    done: int = 0
    retried: int = 0
    """Failed attempts that will be retried."""
    dead: int = 0
    postponed: int = 0
    lost: int = 0
    """Attempts whose claim was lost: cancelled, released, expired, overdue."""
    elsewhere: bool = False
    """Another worker was running and did the work; the counts are unknown and 0."""


class Worker:
    """Runs the jobs of one state folder; there is at most one worker at a time.

    `run_forever` and `run_until_idle` raise WorkerRunning, QueueUnavailable or SchemaTooNew at start. In the main
    thread, SIGTERM, SIGINT and SIGHUP (unless ignored before) drain: nothing new starts, running jobs get
    `drain_seconds`, then their children are killed and their leases released. A second signal ends the wait.
    """

    def __init__(
        self,
        context: WorkerContext,
        handlers: Mapping[str, Handler],
        services: Sequence[Service] = (),
    ) -> None:
        self._context = context
        self._handlers = handlers
        self._services = services
        self._nonce = f"{os.getpid()}:{secrets.token_hex(4)}"
        self._claim_numbers = itertools.count(1)
        self._lock = ProcessLock(context.state.worker_lock)
        self._leaving = False
        self._outdated = False
        self._signals = 0
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stuck_since: float | None = None
        self._queue_file: tuple[int, int] | None = None
        self._next_reread = self._next_report = 0.0
        self._on_left: OnLeft | None = None

    # ---- the two modes

    def run_forever(self) -> int:
        """Run until told to leave; return the exit status."""
        while True:
            with ExitStack() as stack:
                self._start(stack)
                next_health = time.monotonic() + HEALTH_SECONDS
                while not self._leaving and not self._lost_queue():
                    self._wait(BEAT_SECONDS)
                    if self._is_switched_off():
                        self._executor.abandon()  # A pause takes effect now, not when a model has answered.
                    if time.monotonic() >= next_health:
                        next_health = time.monotonic() + HEALTH_SECONDS
                        self._check_health()
                again = not self._leaving
                self._drain()
            if not again or self._signals:
                return 0
            self._leaving = False

    def run_until_idle(
        self,
        timeout_seconds: float | None = None,
        *,
        include_delayed_seconds: float = 0.0,
        on_left: OnLeft | None = None,
    ) -> RunReport:
        """Run all due jobs and those they enqueue, then leave.

        Jobs that are due within `include_delayed_seconds` (the quiet period after a session) run now, except those
        that wait after a failure. If another worker is running, this waits until it is idle. `on_left` is called now
        and then.
        """
        until = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._on_left, self._next_report = on_left, time.monotonic() + REPORT_SECONDS
        try:
            while True:
                with ExitStack() as stack:
                    self._start(stack)
                    timed_out = self._until_idle(self._ledger, until, include_delayed_seconds)
                    again = not self._leaving and self._lost_queue()
                    self._drain()
                    if not again or self._signals:
                        delayed = self._ledger.backlog().delayed
                        break
                self._leaving = False
        except WorkerRunning:
            return self._wait_for_other(until, include_delayed_seconds)
        count = self._executor.outcomes
        return RunReport(
            delayed, timed_out, count["done"], count["retried"], count["dead"], count["postponed"], count["lost"]
        )

    @property
    def is_outdated(self) -> bool:
        """Whether it left only because its context is outdated; the caller then creates another one."""
        return self._outdated and not self._signals

    def leave(self) -> None:
        """Make `run_*` wait for the running jobs and return. May be called from any thread."""
        self._leaving = True
        self._woken.put(None)  # A signal handler may do so at any time.

    def _until_idle(self, ledger: Ledger, until: float, include_delayed: float) -> bool:
        """Return True if the time was up, or it has to leave."""
        while not self._leaving:
            if time.monotonic() > until:
                return True
            if self._is_switched_off() or self._lost_queue():
                return False
            try:
                if not self._executor.running() and self._is_idle(ledger, include_delayed):
                    return False
                self._report(ledger)
            except QueueUnavailable as error:
                log.warning("waiting: %s", error)
            time.sleep(IDLE_POLL_SECONDS)
            self._check_health()
        return True

    def _is_idle(self, ledger: Ledger, include_delayed: float) -> bool:
        if include_delayed > 0 and ledger.advance(include_delayed):
            self._wakeup.wake()
        return not ledger.is_busy() and self._spool.is_empty()

    def _report(self, ledger: Ledger) -> None:
        if self._on_left is not None and time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + REPORT_SECONDS
            backlog = ledger.backlog()
            self._on_left(backlog.running + backlog.due)

    def _wait_for_other(self, until: float, include_delayed: float) -> RunReport:
        state = self._context.state
        with Ledger(state.queue_db, policies=self._context.policies) as ledger:
            spool = Spool(state.spool, ledger)
            while True:
                if include_delayed > 0 and ledger.advance(include_delayed):
                    wake_worker(state.wake_socket)
                is_done = (not ledger.is_busy() and spool.is_empty()) or self._is_switched_off()
                if is_done or time.monotonic() > until:
                    return RunReport(ledger.backlog().delayed, not is_done, elsewhere=True)
                if self._lock.acquire():  # The other worker has left: this one runs the jobs.
                    self._lock.release()
                    left = max(0.0, until - time.monotonic())
                    return self.run_until_idle(left, include_delayed_seconds=include_delayed, on_left=self._on_left)
                self._report(ledger)
                time.sleep(IDLE_POLL_SECONDS)

    # ---- starting

    def _start(self, stack: ExitStack) -> None:
        context, state = self._context, self._context.state
        try:
            state.ensure()
            sole = self._take_lock()
        except OSError as error:
            raise QueueUnavailable(f"the state folder {state.root} cannot be written: {error.strerror}") from error
        stack.callback(self._lock.release)
        ledger, set_aside = open_queue(state, policies=context.policies, busy_seconds=BUSY_SECONDS)
        stack.callback(ledger.close)
        try:
            restored = restore_if_damaged(Path(state.state_db))
        except OSError as error:
            raise QueueUnavailable(f"{state.state_db} is damaged and could not be replaced ({error})") from error
        for note in (set_aside, restored):
            if note:
                log.warning("%s", note)
        self._queue_file = file_identity(state.queue_db)
        executor = Executor(ledger, self._handlers, context.lease_seconds)
        wakeup = Wakeup(state.wake_socket, on_datagram=self._on_datagram)
        ledger.wakeup = wakeup.wake
        self._ledger, self._executor, self._wakeup = ledger, executor, wakeup
        self._spool = Spool(state.spool, ledger)
        self._scheduler = Scheduler(ledger, kinds=self._handlers.keys(), schedules=context.schedules)
        self._next_schedule = time.monotonic()
        self._next_reconciliation = self._next_schedule + context.reconcile_seconds
        self._repair(sole=sole)
        if ledger.worker() is None:  # No worker has filled this file: one beats when it has.
            restore_pauses(state, ledger)
            self._spool.ingest()
            made = requeue_unmined(state, ledger, context.quiet_seconds)
            if made:
                log.warning("%d sessions that were not mined to their end are queued again", made)
        if not self._closed():
            self._spool.ingest()
            self._scheduler.tick()
        wakeup.open()
        stack.callback(wakeup.close)
        self._install_signals(stack)
        executor.start_heart(lambda: ledger.beat(os.getpid()))
        stack.callback(executor.stop_heart)
        huey = VaultHuey(executor.run, self._take, wakeup, context.poll_seconds)
        self._consumer = ThreadConsumer(huey, workers=context.workers, turn=self._turn)
        for service in self._services:
            if (stop := service(ledger)) is not None:
                stack.callback(stop)
        self._consumer.start()
        stack.callback(self._halt)
        log.info("worker %s started", self._nonce)

    def _take(self) -> Claim | None:
        """Claim the next job, each by an owner of its own."""
        if self._closed():
            return None
        return self._ledger.take(lambda: f"{self._nonce}-{next(self._claim_numbers)}", self._context.lease_seconds)

    def _take_lock(self) -> bool:
        """Return True if the lock was free, False if it was taken from a holder that has stopped beating."""
        if self._lock.acquire():
            return True
        holder = lock_holder(self._context.state.worker_lock)
        if not self._holder_is_silent() or not self._lock.take_over():
            raise WorkerRunning(holder)
        log.warning("took over from worker %s, which has stopped beating", holder)
        return False

    def _holder_is_silent(self) -> bool:
        try:
            with Ledger(self._context.state.queue_db, policies=self._context.policies, create=False) as ledger:
                return ledger.is_worker_silent(self._context.lease_seconds)
        except QueueUnavailable:
            return False

    def _install_signals(self, stack: ExitStack) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_IGN:
                continue  # A parent that ignores the signal (nohup) wants the worker to stay.
            previous = signal.signal(number, self._on_signal)
            stack.callback(signal.signal, number, previous)

    def _on_signal(self, number: int, frame: object) -> None:
        # Runs between any two bytecodes, so it takes no lock.
        self._signals += 1
        self.leave()

    def _wait(self, seconds: float) -> None:
        with suppress(queue.Empty):
            self._woken.get(timeout=seconds)

    # ---- while running

    def _turn(self) -> None:
        """Read the spool, run schedules, and repair the ledger after deaths of workers, each when it is time."""
        now = time.monotonic()
        if now >= self._next_reconciliation:
            self._next_reconciliation = now + self._context.reconcile_seconds
            self._check_place()
            self._repair()
        if self._closed():
            return
        self._spool.ingest()
        if now >= self._next_schedule:
            self._next_schedule = now + SCHEDULE_SECONDS
            self._scheduler.tick()

    def _repair(self, *, sole: bool = False) -> None:
        """Requeue expired leases, except for those of running jobs, which only the heartbeat manages, and correct times
        after the clock was set back.

        `sole`: the worker's lock was free, so every lease holder is dead; no need to wait.
        """
        moved = self._ledger.follow_clock()
        held = [job.claim.owner for job in self._executor.running()]
        requeued = self._ledger.requeue_expired(held, all_held_elsewhere=sole)
        kill_point("reconciler")
        if moved or requeued:
            log.warning("repaired: %d jobs of dead workers, %d times in the future", len(requeued), moved)

    def _lost_queue(self) -> bool:
        """Whether queue.db is damaged, deleted or replaced: then everything starts anew."""
        if self._ledger.damaged or self._is_damaged_for_others():
            log.error("queue.db is damaged: starting again with a new one")
        elif file_identity(self._context.state.queue_db) != self._queue_file:
            self._wait(BEAT_SECONDS)  # When the whole folder is being deleted, the lock goes a moment later.
            if not self._holds_place():
                return False
            log.error("queue.db was removed or replaced: starting again")
        else:
            return False
        return True

    def _is_damaged_for_others(self) -> bool:
        if time.monotonic() < self._next_reread:
            return False
        self._next_reread = time.monotonic() + REREAD_SECONDS
        return not is_readable_anew(Path(self._context.state.queue_db))

    def _on_datagram(self, caller_version: str) -> None:
        if is_newer(caller_version):
            log.warning("a client of MemoryVault %s came: leaving, so that it can start its own worker", caller_version)
            self.leave()
        self._executor.check_soon()

    def _closed(self) -> bool:
        return self._leaving or self._is_switched_off()

    def _is_switched_off(self) -> bool:
        return not self._context.enabled or os.path.exists(self._context.state.stop_file)

    def _holds_place(self) -> bool:
        """Whether the lock is still ours; leave if another worker took over or the state folder was deleted.

        A running worker does not recreate a folder that the user deleted; the next start does.
        """
        if self._lock.is_held():
            return True
        if not self._leaving:
            self.leave()
            if self._is_homeless():
                log.error(
                    "the state folder %s, or the lock in it, was deleted: leaving; the next start makes it anew",
                    self._context.state.root,
                )
            else:
                log.warning("another worker took over: leaving")
        return False

    def _is_homeless(self) -> bool:
        return not os.path.exists(self._context.state.worker_lock)

    def _check_place(self) -> None:
        """Leave if another worker took over, the folder is gone, or a newer package is installed."""
        if not self._holds_place():
            return
        if self._ledger.read("PRAGMA user_version")[0][0] > schema.VERSION:
            log.warning("a newer MemoryVault has migrated queue.db: leaving")
            self.leave()
        elif is_newer(newer := installed_version()):
            log.warning("MemoryVault %s was installed: leaving, so that it can take over", newer)
            self.leave()
        elif self._context.is_outdated():
            log.info("the settings have changed: ending what runs, then going on by the new ones")
            self._outdated = True
            self.leave()

    def _check_health(self) -> None:
        self._consumer.check_worker_health()
        overdue = [job for job in self._executor.running() if job.overdue]
        if len(overdue) < self._context.workers:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = time.monotonic()
        elif time.monotonic() - self._stuck_since > STUCK_SECONDS:
            # Threads can't be killed, but the process can. Its attempts are recorded as failed already.
            log.critical("all threads hang in jobs past their deadline: leaving by force")
            os._exit(EXIT_STUCK)

    def _drain(self) -> None:
        """Wait for the consumer's threads, each of which ends after its job; then stop what still runs."""
        self._halt()
        signals = max(self._signals, 1)

        def hurried() -> bool:
            # Without the state folder, nothing could record what a job did.
            return self._signals > signals or self._is_homeless() or self._is_switched_off()

        self._consumer.drain(self._context.drain_seconds, self._executor.abandon, hurried)
        log.info("worker %s left", self._nonce)

    def _halt(self) -> None:
        self._leaving = True
        self._consumer.halt()


_INIT = Path(__file__).resolve().parents[2] / "__init__.py"
_DECLARED = re.compile(rb'^__version__\s*=\s*"([^"]+)"', re.MULTILINE)


def installed_version(init: Path = _INIT) -> str:
    """Return the version of the files on disk; the running version while they are being replaced."""
    try:
        found = _DECLARED.search(init.read_bytes())
    except OSError:
        found = None
    return found.group(1).decode("ascii", "replace") if found else __version__


def is_newer(version: str, than: str = __version__) -> bool:
    """Whether `version` is newer than `than`; False for invalid versions."""
    return _key(version) > _key(than)


def _key(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d{1,9}(\.\d{1,9}){0,5}", version)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()
