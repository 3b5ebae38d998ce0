"""The steps of one review at the terminal, and undo of the last one (key `u`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

from ..runtime.days import day_of
from ..runtime.errors import MemoryVaultError
from ..services.reviewing import Reviewer
from .terminal import read_key

TAKE_BACK = "take it back? [y]es [n]o "
SKIPPED = "skipped"

Place = TypeVar("Place")


def summarize(verdicts: Iterable[str], left: str) -> str:
    """The last line of a review: `this review: 2 approved, 1 skipped; left: 3 proposals`."""
    counts = Counter(verdicts)
    skipped = counts.pop(SKIPPED, 0)
    parts = [f"{number:,} {verdict}" for verdict, number in counts.items()] or ["nothing decided"]
    if skipped:
        parts.append(f"{skipped:,} {SKIPPED}")
    return f"this review: {', '.join(parts)}; left: {left}"


class Steps(Generic[Place]):
    """The places of the dialogue in order, each with the id of the act that was made there, if any.

    `run` is the name of the dialogue's acts in the journal.
    """

    def __init__(self, reviewer: Reviewer, run: str) -> None:
        self._reviewer = reviewer
        self._run = run
        self._done: list[tuple[Place, str | None]] = []
        self.verdicts: list[str] = []
        """The verdict of each step that was not undone."""
        self._known: set[str] = set()
        """Ids of the acts of all steps, including undone ones."""

    def skipped(self, place: Place) -> None:
        """Record that nothing was decided at `place`."""
        self._done.append((place, None))
        self.verdicts.append(SKIPPED)

    def decided(self, place: Place, verdict: str) -> None:
        """Record a decision at `place`; its act is the newest of the run, unless the decision changed no file."""
        self.verdicts.append(verdict)
        acts = (act.id for act in self._reviewer.journal.newest_decisions() if act.run == self._run)
        newest = next(acts, None)
        self._done.append((place, None if newest in self._known else newest))
        if newest is not None:
            self._known.add(newest)

    def go_back(self) -> tuple[Place | None, bool]:
        """Undo the last step and print that. Return the place to continue at (None: here), and whether files changed.

        If the last decision was made before this dialogue, show it and undo it only if the user says yes.
        """
        try:
            if not self._done:
                return None, self._take_back_older()
            place, act = self._done[-1]
            changed = act is not None and self._take_back(act)
        except MemoryVaultError as error:
            print(str(error))
            return None, False
        self._done.pop()
        self.verdicts.pop()
        return place, changed

    def _take_back_older(self) -> bool:
        act = self._reviewer.last_decision()
        if act is None:
            print("there is no decision to take back")
            return False
        print(f"nothing was decided here yet; the last decision before is of {day_of(act.at)}: {act.what}")
        if read_key(TAKE_BACK) != "y":
            print("nothing was taken back")
            return False
        return self._take_back(act.id)

    def _take_back(self, act: str) -> bool:
        undone = self._reviewer.undo_last(act)
        if undone is not None:
            print(undone.what)
        return undone is not None
