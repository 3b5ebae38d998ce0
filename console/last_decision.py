"""The last decision, for the pages that offer to take it back: looked for again only when the journal has changed.

In a journal of 32 MB that only the worker has written into for long, to find it takes as long as to list a vault of
20,000 notes; nearly always nothing was written since the page before.
"""

from __future__ import annotations

import threading

from ..services.journal import Act, JournalState
from ..services.reviewing import Reviewer


class LastDecision:
    """What was found last, and in which state of the journal; for all requests of one console."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[JournalState, Act | None] | None = None

    def of(self, reviewer: Reviewer) -> Act | None:
        """As `Reviewer.last_decision`; always of the same vault."""
        with self._lock:
            # Before the journal is read: what comes meanwhile is looked for again.
            state = reviewer.journal.state_of_files()
            if self._known is None or self._known[0] != state:
                self._known = state, reviewer.last_decision()
            return self._known[1]
