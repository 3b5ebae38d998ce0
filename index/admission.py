"""Admission control: which recall runs next and how thoroughly, when there are more than can be answered in time.

A few run at once, since more than there are cores only makes each later. Of those that wait, the nearest deadline is
first. When not all of them can be answered in full by their deadlines, they run with reduced effort: a weaker answer to
each is better than a good one to the first three. A recall whose deadline has passed is not run.
"""

from __future__ import annotations

import heapq
import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum

FULL_SECONDS = 0.04
"""The assumed time of a full recall until one has been measured."""
SMOOTHING = 0.2
"""Weight of the last recall in the moving average: it has to follow a burst, not a single slow question."""
HALF_LIFE_SECONDS = 1.0
"""After so long only half of what the average has above FULL_SECONDS counts. A reduced recall measures nothing: one
slow moment would otherwise keep all later ones reduced. A burst of prompts is over sooner."""
MIN_SECONDS = 0.005
"""The time of a reduced recall: with less left none is started."""
MAX_WAIT_SECONDS = 10.0
"""The longest wait for a place, whatever the deadline: by then our clients have hung up (client.RECALL_SECONDS)."""


class Effort(Enum):
    """How thoroughly a recall is to run."""

    FULL = "full"
    REDUCED = "reduced"
    NONE = "none"
    """Not at all: its deadline has passed."""


class Admission:
    """Admits `places` recalls at once, nearest deadline first; may be used from several threads."""

    def __init__(self, places: int | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = self._places = places or max(2, min(4, os.cpu_count() or 1))
        self._clock = clock
        self._full_seconds = FULL_SECONDS
        self._measured_at = clock()
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._number = itertools.count()
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, deadline: float | None) -> Iterator[Effort]:
        """Wait for a place, until `deadline` (monotonic seconds) at most, and yield the effort that there is time for.

        Recalls without a deadline come behind those that have one. The wait ends after MAX_WAIT_SECONDS.
        """
        if not self._enter(math.inf if deadline is None else deadline):
            yield Effort.NONE
            return
        started = self._clock()
        effort = self._choose_effort(deadline, started)
        try:
            yield effort
        finally:
            self._leave(self._clock() - started if effort is Effort.FULL else None)

    def _enter(self, deadline: float) -> bool:
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return True
            admitted = threading.Event()
            heapq.heappush(self._waiting, (deadline, next(self._number), admitted))
        try:
            admitted.wait(max(0.0, min(deadline - MIN_SECONDS - self._clock(), MAX_WAIT_SECONDS)))
        finally:
            with self._lock:
                is_admitted = admitted.is_set()
                if not is_admitted:
                    # Else a place would be handed to a recall that has given up.
                    self._waiting = [waiter for waiter in self._waiting if waiter[2] is not admitted]
                    heapq.heapify(self._waiting)
        return is_admitted

    def _choose_effort(self, deadline: float | None, now: float) -> Effort:
        if deadline is None:
            return Effort.FULL
        if now >= deadline:
            return Effort.NONE
        with self._lock:
            running, full_seconds = self._places - self._free, self._expected_seconds(now)
            # In the order of their admission: a recall is done after those before it.
            deadlines = [deadline, *sorted(waiter[0] for waiter in self._waiting)]
            for number, latest in enumerate(deadlines, running):
                if now + math.ceil(number / self._places) * full_seconds > latest:
                    return Effort.REDUCED
        return Effort.FULL

    def _expected_seconds(self, now: float) -> float:
        above = self._full_seconds - FULL_SECONDS
        if above <= 0:
            return self._full_seconds
        return FULL_SECONDS + above * math.exp2((self._measured_at - now) / HALF_LIFE_SECONDS)

    def _leave(self, full_seconds: float | None) -> None:
        with self._lock:
            if full_seconds is not None:
                now = self._clock()
                expected = self._expected_seconds(now)
                self._full_seconds = expected + SMOOTHING * (full_seconds - expected)
                self._measured_at = now
            if self._waiting:
                heapq.heappop(self._waiting)[2].set()  # which takes over the place
            else:
                self._free += 1
