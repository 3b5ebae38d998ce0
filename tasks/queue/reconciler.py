"""Puts right what deaths, lost messages and clocks have left in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ...runtime.killpoint import kill_point
from .ledger import Ledger

log = logging.getLogger(__name__)

LOST_MESSAGE_SECONDS = 5.0
"""A message this old is looked up in huey's table."""


@dataclass(frozen=True)
class Repaired:
    """What one pass changed."""

    requeued: int
    messages: int
    moved: int


class Reconciler:
    """Requeues expired leases, finds lost messages, follows a clock that was set back."""

    def __init__(self, ledger: Ledger, held: Callable[[], Collection[str]]) -> None:
        self._ledger = ledger
        self._held = held
        """Owners of what runs here: those leases are the heartbeat's business, whatever the clock says."""

    def at_start(self, *, sole: bool) -> Repaired:
        """The first pass.  `sole`: the lock was free, so whoever holds a lease is dead; no need to wait."""
        return self._pass(all_others=sole, message_age=0.0)

    def run(self) -> Repaired:
        """One pass."""
        return self._pass(all_others=False, message_age=LOST_MESSAGE_SECONDS)

    def _pass(self, *, all_others: bool, message_age: float) -> Repaired:
        moved = self._ledger.follow_clock()
        requeued = self._ledger.requeue_expired(self._held(), all_held_elsewhere=all_others)
        kill_point("reconciler")
        messages = self._ledger.forget_lost_messages(message_age)
        repaired = Repaired(len(requeued), messages, moved)
        if repaired != Repaired(0, 0, 0):
            log.warning(
                "repaired: %d jobs of dead workers, %d lost messages, %d times in the future",
                repaired.requeued, repaired.messages, repaired.moved,
            )  # fmt: skip
        return repaired
