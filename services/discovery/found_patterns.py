"""The found patterns and their verdicts, in state.db: between a scan and the notes made from it.

The user's decisions are in the notes of the watchlist. Nothing is ever deleted, because a pattern must not be found
twice. A list of thousands adds about 200 patterns in five weeks: 1 MB a year. 50,000 rows take 22 MB, and a scan reads
them in half a second for each source.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from ...pipelines.discovery import Pattern
from ..cursors import Cursors


class FoundPatterns:
    """The found patterns of one vault, by key."""

    def __init__(self, state_db: Path | str) -> None:
        self._rows = Cursors(state_db, "found")

    def add(self, patterns: Iterable[Pattern]) -> None:
        """Add new patterns in one transaction: a list may have thousands."""
        found = self.unknown(patterns)
        self._rows.set_all({pattern.key: {"pattern": asdict(pattern), "confidence": ""} for pattern in found})

    def unknown(self, patterns: Iterable[Pattern]) -> tuple[Pattern, ...]:
        """Return the patterns that were never found before, in order."""
        there = self._rows.all()
        return tuple(pattern for pattern in patterns if pattern.key not in there)

    def waiting(self) -> list[Pattern]:
        """Return the patterns without a verdict, by key."""
        rows = self._rows.all()
        return [Pattern(**rows[key]["pattern"]) for key in sorted(rows) if not rows[key]["confidence"]]

    def judged(self) -> int:
        """Return the number of patterns with a verdict."""
        return sum(bool(row["confidence"]) for row in self._rows.all().values())

    def judge(self, key: str, verdict: str) -> None:
        """Store a verdict."""
        row = self._rows.get(key)
        if row is not None:
            self._rows.set(key, {**row, "confidence": verdict})
