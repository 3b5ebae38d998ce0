"""Which recall is worked on next, and how thoroughly, when more is asked than the processor can answer in time.

A few at once, since more than there are cores only makes each later; of those that wait the one whose time ends first;
and when not all of them can be answered in full in the time they have, in a hurry: a weaker answer to each
beats a good one to the first three. What can no longer be answered at all costs nothing.
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
"""What a whole recall takes before one has been measured."""
SHARE_OF_THE_LAST = 0.2
"""How fast the measure follows: it has to notice a burst, not a single slow question."""
LEAST_SECONDS = 0.005
"""A recall in a hurry takes about this long: with less left there is no use in beginning."""
LONGEST_WAIT_SECONDS = 10.0
"""Nobody waits longer for a place, whatever time they have: by then a client of ours has hung up (RECALL_SECONDS)."""


class Effort(Enum):
    """How a recall is to be worked on."""

    FULL = "full"
    REDUCED = "reduced"
    NONE = "none"
    """Its time is over."""


class Admission:
    """`places` recalls at once, nearest deadline first; for threads."""

    def __init__(self, places: int | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = self._places = places or max(2, min(4, os.cpu_count() or 1))
        self._clock = clock
        self._full_seconds = FULL_SECONDS
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._number = itertools.count()
        self._lock = threading.Lock()

    @contextmanager
    def admit(self, deadline: float | None) -> Iterator[Effort]:
        """Wait for a place, until `deadline` (monotonic seconds) at most, and say what there is time for.

        Without a deadline the answer may take its time, behind those who have one. Nobody waits longer than
        LONGEST_WAIT_SECONDS.
        """
        if not self._enter(math.inf if deadline is None else deadline):
            yield Effort.NONE
            return
        begun = self._clock()
        effort = self._effort(deadline, begun)
        try:
            yield effort
        finally:
            self._leave(self._clock() - begun if effort is Effort.FULL else None)

    def _enter(self, deadline: float) -> bool:
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return True
            called = threading.Event()
            heapq.heappush(self._waiting, (deadline, next(self._number), called))
        try:
            called.wait(max(0.0, min(deadline - LEAST_SECONDS - self._clock(), LONGEST_WAIT_SECONDS)))
        finally:
            with self._lock:
                came = called.is_set()
                if not came:
                    # Nobody must hand a place to who does not wait any more.
                    self._waiting = [each for each in self._waiting if each[2] is not called]
                    heapq.heapify(self._waiting)
        return came

    def _effort(self, deadline: float | None, now: float) -> Effort:
        if deadline is None:
            return Effort.FULL
        if now >= deadline:
            return Effort.NONE
        with self._lock:
            at_work = self._places - self._free
            # In the order in which they will be called: each is done when those before it are.
            ends = [deadline, *sorted(each[0] for each in self._waiting)]
            for number, end in enumerate(ends, at_work):
                if now + math.ceil(number / self._places) * self._full_seconds > end:
                    return Effort.REDUCED
        return Effort.FULL

    def _leave(self, took: float | None) -> None:
        with self._lock:
            if took is not None:
                self._full_seconds += SHARE_OF_THE_LAST * (took - self._full_seconds)
            if self._waiting:
                heapq.heappop(self._waiting)[2].set()  # the place goes over to it
            else:
                self._free += 1
