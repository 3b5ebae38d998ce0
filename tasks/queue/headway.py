"""How far a run until idle is, told now and then to whoever waits for its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .ledger import Ledger

TELLING_SECONDS = 0.5
"""Between two tellings; less than that is too short to be told of."""


@dataclass(frozen=True)
class Headway:
    """What a run has done so far, and what it has before it."""

    seconds: float
    done: int
    """Attempts that succeeded; 0 where another worker makes them."""
    left: Mapping[str, int]
    """By kind, how many jobs run or are due."""
    elsewhere: bool = False
    """Another worker of this machine does it."""


OnProgress = Callable[[Headway], None]


class Teller:
    """Calls `on_progress` every TELLING_SECONDS of a run that looks at its ledger more often."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._next = self._started + TELLING_SECONDS

    def is_due(self) -> bool:
        """Whether somebody listens, and it is time: what is told costs queries."""
        return self._on_progress is not None and time.monotonic() >= self._next

    def tell(self, ledger: Ledger, *, done: int = 0, elsewhere: bool = False) -> None:
        """Raises QueueUnavailable."""
        now = time.monotonic()
        self._next = now + TELLING_SECONDS
        if self._on_progress is not None:
            self._on_progress(Headway(now - self._started, done, ledger.to_do(), elsewhere))
