"""Repair the ledger after deaths of workers, lost messages and changes of the clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ...runtime.killpoint import kill_point
from .ledger import Ledger

log = logging.getLogger(__name__)

LOST_MESSAGE_SECONDS = 5.0
"""Age from which a message is looked up in huey's table."""


@dataclass(frozen=True)
class Repaired:
    """The changes of one pass."""

    requeued: int
    messages: int
    moved: int


class Reconciler:
    """Requeues expired leases, finds lost messages, corrects times after the clock was set back."""

    def __init__(self, ledger: Ledger, held: Callable[[], Collection[str]]) -> None:
        self._ledger = ledger
        self._held = held
        """Returns the owners of attempts in this process, whose leases only the heartbeat manages."""

    def at_start(self, *, sole: bool) -> Repaired:
        """Run the first pass. `sole`: the lock was free, so every lease holder is dead; no need to wait."""
        return self._pass(all_others=sole, message_age=0.0)

    def run(self) -> Repaired:
        """Run one pass."""
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
