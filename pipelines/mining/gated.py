"""Patterns that are searched only where a word of theirs stands.

Mining asks some hundred questions of each sentence, and most answers are no for want of a single word. A search for a
fixed string costs a fiftieth of a search for a pattern, so every pattern gets the strings of which each of its matches
holds at least one. They are read off the pattern itself; where that cannot be done, it is always searched.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

MAX_STEMS = 40
"""More fixed strings than that cost as much as the pattern."""


class GatedPattern:
    """A compiled pattern with its gate. `folded` is always the searched text, case-folded (`fold`)."""

    __slots__ = ("match", "pattern", "stems")

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.stems = stems(pattern)
        self.match = pattern.match

    def search(self, text: str, folded: str) -> re.Match[str] | None:
        """As `Pattern.search`, sooner."""
        if self.may_match(folded):
            return self.pattern.search(text)
        return None

    def may_match(self, folded: str) -> bool:
        """False only where the pattern matches nothing in the text. Looser than a search: it ignores word ends."""
        if not self.stems:
            return True
        for stem in self.stems:  # noqa: SIM110  a generator would take twice as long
            if stem in folded:
                return True
        return False


_TURKISH = str.maketrans("İı", "ii")
"""`re.IGNORECASE` takes both for an "i"; `casefold` does not."""


def fold(text: str) -> str:
    """The text as gates want it: what `re.IGNORECASE` holds equal is equal."""
    return text.lower() if text.isascii() else text.translate(_TURKISH).casefold()


def stems(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Case-folded strings of which every match holds at least one; () where there are no such or too many."""
    try:
        # Private, so its absence must cost no more than time. tests/pipelines/test_gated.py looks that it is there.
        parser: Any = importlib.import_module("re._parser")
        found = _of_sequence(parser.parse(pattern.pattern, pattern.flags))
    except (ImportError, AttributeError, TypeError, ValueError):
        return ()
    if found is None or len(found) > MAX_STEMS:
        return ()
    return tuple(sorted(stem for stem in found if not any(other != stem and other in stem for other in found)))


def _of_sequence(parts: Iterable[Any]) -> frozenset[str] | None:
    """The best set of strings among the parts of a concatenation; None when no part has one."""
    best: frozenset[str] | None = None
    literal = ""
    for name, value in (*((str(op), arg) for op, arg in parts), ("END", None)):
        if name == "LITERAL" and (fold(chr(value)).isascii() or not chr(value).isalpha()):
            literal += fold(chr(value))
            continue
        if literal:
            best = _better(best, frozenset([literal]))
            literal = ""
        if name == "SUBPATTERN":
            best = _better(best, _of_sequence(value[3]))
        elif name == "ATOMIC_GROUP":
            best = _better(best, _of_sequence(value))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[0] > 0:
            best = _better(best, _of_sequence(value[2]))
        elif name == "BRANCH":
            branches = [_of_sequence(branch) for branch in value[1]]
            if all(branch is not None for branch in branches):
                best = _better(best, frozenset().union(*(branch for branch in branches if branch is not None)))
    return best


_EVERYWHERE = frozenset("the this that it is are was you your and for not from with have".split())  # noqa: SIM905  reads better than a list


def _better(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """The one that lets less through: without words that stand in every other sentence, then with longer strings,
    then with fewer."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=_looseness)


def _looseness(strings: frozenset[str]) -> tuple[int, int, int]:
    everywhere = sum(string.strip() in _EVERYWHERE for string in strings)
    return everywhere, -min(3, min(map(len, strings))), len(strings)
