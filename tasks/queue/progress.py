"""Progress of a run until idle, reported now and then to the caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .ledger import Ledger

REPORT_SECONDS = 0.5
"""Between two reports; a shorter run reports nothing."""


@dataclass(frozen=True)
class RunProgress:
    """What a run has done so far, and what it has before it."""

    seconds: float
    done: int
    """Attempts that succeeded; 0 where another worker makes them."""
    left: Mapping[str, int]
    """By kind, how many jobs run or are due."""
    elsewhere: bool = False
    """Another worker of this machine does it."""


OnProgress = Callable[[RunProgress], None]


class ProgressReporter:
    """Calls `on_progress` at most every REPORT_SECONDS."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._next = self._started + REPORT_SECONDS

    def is_due(self) -> bool:
        """Whether there is a listener and REPORT_SECONDS have passed: a report runs queries."""
        return self._on_progress is not None and time.monotonic() >= self._next

    def report(self, ledger: Ledger, *, done: int = 0, elsewhere: bool = False) -> None:
        """Raises QueueUnavailable."""
        now = time.monotonic()
        self._next = now + REPORT_SECONDS
        if self._on_progress is not None:
            self._on_progress(RunProgress(now - self._started, done, ledger.to_do(), elsewhere))
