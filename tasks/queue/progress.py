"""Report the progress of a run until idle to its caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .ledger import Ledger

REPORT_SECONDS = 0.5
"""Seconds between two reports; a shorter run reports nothing."""


@dataclass(frozen=True)
class RunProgress:
    """What a run has done so far, and what is left."""

    seconds: float
    done: int
    """Successful attempts; 0 if another worker runs the jobs."""
    left: Mapping[str, int]
    """How many jobs are running or due, by kind."""
    elsewhere: bool = False
    """Another worker of this machine runs the jobs."""


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
        """Report to the listener. Raises QueueUnavailable."""
        now = time.monotonic()
        self._next = now + REPORT_SECONDS
        if self._on_progress is not None:
            self._on_progress(RunProgress(now - self._started, done, ledger.to_do(), elsewhere))
