"""Repair the ledger after deaths of workers and changes of the clock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from ...runtime.killpoint import kill_point
from .ledger import Ledger

log = logging.getLogger(__name__)


class Reconciler:
    """Requeues expired leases, corrects times after the clock was set back."""

    def __init__(self, ledger: Ledger, held: Callable[[], Collection[str]]) -> None:
        self._ledger = ledger
        self._held = held
        """Returns the owners of attempts in this process, whose leases only the heartbeat manages."""

    def run(self, *, sole: bool = False) -> None:
        """Run one pass. `sole`: the worker's lock was free, so every lease holder is dead; no need to wait."""
        moved = self._ledger.follow_clock()
        requeued = self._ledger.requeue_expired(self._held(), all_held_elsewhere=sole)
        kill_point("reconciler")
        if moved or requeued:
            log.warning("repaired: %d jobs of dead workers, %d times in the future", len(requeued), moved)
