"""Which words a text must hold for a pattern to match in it, read off the pattern itself.

Of most patterns several things are known: of `\\b(?:not|isn'?t)\\s+(?:right|correct)\\b`, that a word of the first
group and one of the second stand in each match, and that "right" ends where the word ends. A text is told by its words
alone, for many patterns at once (`WordGates`), and only what is left has to be searched.
"""

from __future__ import annotations

import functools
import importlib
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .gated import fold
from .words import Hashed, kept, word_matches

if TYPE_CHECKING:
    _KnownWords = dict[str, tuple[int, int, int, bytes]]
else:
    _KnownWords = dict

MOST_CLAUSES = 3
"""Groups of words of a pattern that are looked for; a fourth would hardly ever be the one that is missing."""


class Wanted(NamedTuple):
    """A piece of text that stands in a match, case-folded: a word as `words_of` cuts it, or part of one, or signs."""

    text: str
    begins: bool
    """The word begins with it."""
    ends: bool
    """The word ends with it."""

    @property
    def is_word(self) -> bool:
        return next(word_matches(self.text), None) is not None


Clause = frozenset[Wanted]
"""At least one of these stands in each match."""


def clauses(pattern: re.Pattern[str]) -> tuple[Clause, ...]:
    """Clauses that all hold for each match, the one that lets least through first; () where nothing is known."""
    try:
        # Private, so its absence must cost no more than time. tests/pipelines/test_gated.py looks that it is there.
        parser: Any = importlib.import_module("re._parser")
        parts = parser.parse(pattern.pattern, pattern.flags)
    except (ImportError, AttributeError):
        return ()
    return tuple(_of_sequence(parts, False, False))


class WordGates:
    """The gates of many patterns at once, each a bit of a number: a look at each word instead of a search for each."""

    def __init__(self, patterns: Mapping[str, re.Pattern[str]]) -> None:
        self.bits: Mapping[str, int] = {name: 1 << place for place, name in enumerate(patterns)}
        self._width = len(self.bits)
        self._all = (1 << self._width) - 1
        # One such number for each clause, side by side in a longer one. A clause that a pattern lacks is fulfilled.
        self._fulfilled = 0
        self._signs: dict[str, int] = {}
        words: dict[Wanted, int] = {}
        for name, pattern in patterns.items():
            known = clauses(pattern)
            for place in range(MOST_CLAUSES):
                bit = self.bits[name] << (place * self._width)
                if place >= len(known):
                    self._fulfilled |= bit
                    continue
                for wanted in known[place]:
                    if wanted.is_word:
                        words[wanted] = words.get(wanted, 0) | bit
                    elif wanted.text.lower() != wanted.text.upper():
                        self._fulfilled |= bit  # Letters of other alphabets: not looked for.
                    else:
                        self._signs[wanted.text] = self._signs.get(wanted.text, 0) | bit
        self.known = _Known(words)
        """Word -> the bits of the clauses that it fulfils, and its `Hashed`."""

    def open_by(self, of_words: Sequence[int], text: str) -> int:
        """The bits of all patterns that may match in a text; `of_words`: what is `known` first of its words, folded."""
        found = functools.reduce(operator.or_, filter(None, of_words), self._fulfilled)
        for signs, bits in self._signs.items():
            if signs in text:
                found |= bits
        return found & (found >> self._width) & (found >> 2 * self._width) & self._all


class _Known(_KnownWords):
    """What is known of each word: one look for all that is asked of it."""

    def __init__(self, wanted: Mapping[Wanted, int]) -> None:
        super().__init__()
        self._by_first: dict[str, list[tuple[Wanted, int]]] = {}
        for item, bits in wanted.items():
            self._by_first.setdefault(item.text[0], []).append((item, bits))

    def __missing__(self, word: str) -> tuple[int, int, int, bytes]:
        return kept(self, word, (self._fulfilled_by(word), *Hashed.of(word)))

    def _fulfilled_by(self, word: str) -> int:
        found = 0
        for place, letter in enumerate(word):
            for (text, begins, ends), bits in self._by_first.get(letter, ()):
                # For a pattern an apostrophe ends a word; `words_of` takes "don't" for one.
                if begins and place and word[place - 1] != "'":
                    continue
                end = place + len(text)
                if ends and end < len(word) and word[end] != "'":
                    continue
                if word.startswith(text, place):
                    found |= bits
        return found


# ------------------------------------------------------------------------------------------------ reading a pattern


def _of_sequence(parts: Iterable[Any], begins: bool, ends: bool) -> list[Clause]:
    """What is known of a concatenation whose two ends are edges or not (`_beyond`)."""
    named = _named(parts)
    edges = _edges(named, begins, ends)
    found: list[Clause] = []
    literal, start = "", 0
    for place, (name, value) in enumerate((*named, ("END", None))):
        if name == "LITERAL" and (fold(chr(value)).isascii() or not chr(value).isalpha()):
            start = start if literal else place
            literal += fold(chr(value))
            continue
        if literal:
            found += _of_literal(literal, edges[start], edges[place])
            literal = ""
        if name == "SUBPATTERN":
            found += _of_sequence(value[3], edges[place], edges[place + 1])
        elif name == "ATOMIC_GROUP":
            found += _of_sequence(value, edges[place], edges[place + 1])
        elif name in _REPEATS and value[0] > 0:
            once = value[1] == 1
            found += _of_sequence(value[2], once and edges[place], once and edges[place + 1])
        elif name == "BRANCH":
            found += _of_branches([_of_sequence(branch, edges[place], edges[place + 1]) for branch in value[1]])
    return sorted(found, key=_looseness)[:MOST_CLAUSES]


def _of_literal(literal: str, begins: bool, ends: bool) -> list[Clause]:
    words = list(word_matches(literal))
    if not words:
        return [frozenset([Wanted(literal, False, False)])]
    return [
        frozenset(
            [
                Wanted(
                    word[0],
                    word.start() > 0 or (begins and word[0][0].isalnum()),
                    word.end() < len(literal) or (ends and word[0][-1].isalnum()),
                )
            ]
        )
        for word in words
    ]


def _of_branches(branches: list[list[Clause]]) -> list[Clause]:
    """A match fulfils all clauses of one branch: so the first of one of them, and the second of one of them."""
    if not all(branches):
        return []
    longest = max(len(branch) for branch in branches)
    return [
        frozenset().union(*(branch[min(place, len(branch) - 1)] for branch in branches)) for place in range(longest)
    ]


_COMMON = """a an and are as be for from have i in is it let me need no not now of on or so that the there this to was
we what when will with you your"""
_EVERYWHERE = frozenset(_COMMON.split())
"""Words that stand in every other sentence: a clause with one of them tells little."""


def _looseness(clause: Clause) -> tuple[int, int, int]:
    """What lets less through comes first: without common words and signs, then of longer words, then of fewer."""
    common = sum(wanted.text in _EVERYWHERE or not wanted.is_word for wanted in clause)
    return common, -min(3, min(len(wanted.text) for wanted in clause)), len(clause)


_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_EDGES = frozenset({"AT_BOUNDARY", "AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING"})
_NO_LETTER = frozenset({"CATEGORY_SPACE", "CATEGORY_NOT_WORD"})


def _named(parts: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(str(kind), value) for kind, value in parts]


def _edges(parts: Sequence[tuple[str, Any]], begins: bool, ends: bool) -> list[bool]:
    """For the place before each part, and the one behind the last: does the pattern see to it that it is an edge?"""
    before, behind = [begins], [ends]
    for part in parts:
        before.append(_beyond(part, before[-1], 1))
    for part in reversed(parts):
        behind.append(_beyond(part, behind[-1], -1))
    return [one or other for one, other in zip(before, reversed(behind), strict=True)]


def _beyond(part: tuple[str, Any], edge: bool, step: int) -> bool:
    """Is the far side of a part an edge, a place with no letter, digit or underscore on one of its sides? `edge`: the
    near side is one; `step`: 1 from left to right, -1 from right to left."""
    name, value = part
    if name == "AT":
        return str(value) in _EDGES or edge
    if name in ("ASSERT", "ASSERT_NOT"):
        return edge  # it takes up no room
    if name == "LITERAL":
        return not (chr(value).isalnum() or chr(value) == "_")
    if name == "IN":
        return all(
            _beyond((kind, member), False, step) if kind == "LITERAL" else str(member) in _NO_LETTER
            for kind, member in _named(value)
        )
    if name == "BRANCH":
        return all(_beyond_all(branch, edge, step) for branch in value[1])
    if name == "SUBPATTERN":
        return _beyond_all(value[3], edge, step)
    if name == "ATOMIC_GROUP":
        return _beyond_all(value, edge, step)
    if name in _REPEATS:
        # Where it may be repeated, the near side of a later round is unknown.
        return _beyond_all(value[2], edge and value[1] == 1, step) and (edge or value[0] > 0)
    return False


def _beyond_all(parts: Iterable[Any], edge: bool, step: int) -> bool:
    for part in _named(parts)[::step]:
        edge = _beyond(part, edge, step)
    return edge
