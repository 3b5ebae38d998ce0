"""The found patterns and their verdicts, in state.db: between a scan and the notes made from it.

The user's decisions are in the notes of the watchlist. Nothing is ever deleted, because a pattern must not be found
twice. A list of thousands adds about 200 patterns in five weeks: 1 MB a year. 50,000 rows take 22 MB, and a scan reads
them in half a second for each source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...pipelines.discovery import Pattern
from ...pipelines.scrub import scrub
from ..cursors import Cursors


@dataclass(frozen=True)
class FoundPattern:
    """A pattern, the day it was found, and its verdict; '' while it waits."""

    pattern: Pattern
    day: str
    confidence: str = ""


class FoundPatterns:
    """The found patterns of one vault, by key."""

    def __init__(self, state_db: Path | str) -> None:
        self._rows = Cursors(state_db, "found")

    def add(self, patterns: Iterable[Pattern], day: str) -> int:
        """Add new patterns, scrubbed, and return how many. One transaction: a list may have thousands."""
        new = {pattern.key: pattern for pattern in self.unknown(patterns)}
        self._rows.set_all({key: _row(pattern, day) for key, pattern in new.items()})
        return len(new)

    def unknown(self, patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
        """Return the patterns that were never found before, in order."""
        there = self._rows.all()
        return tuple(pattern for pattern in patterns if pattern.key not in there)

    def get(self, key: str) -> FoundPattern | None:
        """Return one pattern, or None."""
        row = self._rows.get(key)
        return None if row is None else _found(row)

    def waiting(self) -> list[FoundPattern]:
        """Return the patterns without a verdict, by key."""
        rows = self._rows.all()
        return [_found(rows[key]) for key in sorted(rows) if not rows[key].get("confidence")]

    def judged(self) -> int:
        """Return the number of patterns with a verdict."""
        return sum(bool(row.get("confidence")) for row in self._rows.all().values())

    def judge(self, key: str, confidence: str) -> None:
        """Store a verdict."""
        row = self._rows.get(key)
        if row is not None:
            self._rows.set(key, {**row, "confidence": confidence})


def _row(pattern: Pattern, day: str) -> Mapping[str, Any]:
    told = {"title": scrub(pattern.title), "description": scrub(pattern.description)}
    return {"pattern": {**asdict(pattern), **told}, "day": day, "confidence": ""}


def _found(row: Mapping[str, Any]) -> FoundPattern:
    return FoundPattern(Pattern(**row["pattern"]), str(row["day"]), str(row["confidence"]))
