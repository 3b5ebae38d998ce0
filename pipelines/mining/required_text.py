"""Deriving from a pattern which words a text must contain for the pattern to match.

Each match of `\\b(?:not|isn'?t)\\s+(?:right|correct)\\b`, for example, contains a word of the first group and one of
the second, and "right" is at the end of its word. The words of a text rule out many patterns at once (`WordGates`),
and only the others have to be searched.
"""

from __future__ import annotations

import functools
import importlib
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .caseless_pattern import fold
from .tokens import TokenHash, kept, word_matches

if TYPE_CHECKING:
    _KnownWords = dict[str, tuple[int, int, int, bytes]]
else:
    _KnownWords = dict

MOST_CLAUSES = 3
"""Most clauses of a pattern that are tested; a fourth would hardly ever be the missing one."""


class RequiredText(NamedTuple):
    """A piece of text that a match contains, case-folded: a word as `words_of` splits it, part of one, or signs."""

    text: str
    begins: bool
    """Whether the word begins with it."""
    ends: bool
    """Whether the word ends with it."""

    @property
    def is_word(self) -> bool:
        return next(word_matches(self.text), None) is not None


Clause = frozenset[RequiredText]
"""Texts of which each match contains at least one."""


def clauses(pattern: re.Pattern[str]) -> tuple[Clause, ...]:
    """Derive the clauses that every match fulfils, the most selective first; () if none can be derived."""
    try:
        # Private, so its absence must cost no more than time. tests/pipelines/test_gated.py asserts that it exists.
        parser: Any = importlib.import_module("re._parser")
        parts = parser.parse(pattern.pattern, pattern.flags)
    except (ImportError, AttributeError):
        return ()
    return tuple(_clauses_of_sequence(parts, False, False))


class WordGates:
    """Tests many patterns at once, each a bit of a number: one lookup a word instead of one search a pattern."""

    def __init__(self, patterns: Mapping[str, re.Pattern[str]]) -> None:
        self.bits: Mapping[str, int] = {name: 1 << place for place, name in enumerate(patterns)}
        self._width = len(self.bits)
        self._all = (1 << self._width) - 1
        # One such number for each clause, concatenated in a longer one. A clause that a pattern lacks is fulfilled.
        self._fulfilled = 0
        self._signs: dict[str, int] = {}
        words: dict[RequiredText, int] = {}
        for name, pattern in patterns.items():
            known = clauses(pattern)
            for place in range(MOST_CLAUSES):
                bit = self.bits[name] << (place * self._width)
                if place >= len(known):
                    self._fulfilled |= bit
                    continue
                for required in known[place]:
                    if required.is_word:
                        words[required] = words.get(required, 0) | bit
                    elif required.text.lower() != required.text.upper():
                        self._fulfilled |= bit  # Letters of other alphabets are not tested.
                    else:
                        self._signs[required.text] = self._signs.get(required.text, 0) | bit
        self.known = _WordCache(words)
        """Maps a word to the bits of the clauses that it fulfils, and its `TokenHash`."""

    def open_by(self, of_words: Sequence[int], text: str) -> int:
        """Bits of all patterns that may match a text; `of_words`: the first of the `known` values of its words."""
        found = functools.reduce(operator.or_, filter(None, of_words), self._fulfilled)
        for signs, bits in self._signs.items():
            if signs in text:
                found |= bits
        return found & (found >> self._width) & (found >> 2 * self._width) & self._all


class _WordCache(_KnownWords):
    """Caches for each word all that is looked up of it."""

    def __init__(self, required: Mapping[RequiredText, int]) -> None:
        super().__init__()
        self._by_first: dict[str, list[tuple[RequiredText, int]]] = {}
        for item, bits in required.items():
            self._by_first.setdefault(item.text[0], []).append((item, bits))

    def __missing__(self, word: str) -> tuple[int, int, int, bytes]:
        return kept(self, word, (self._fulfilled_by(word), *TokenHash.of(word)))

    def _fulfilled_by(self, word: str) -> int:
        found = 0
        for place, letter in enumerate(word):
            for (text, begins, ends), bits in self._by_first.get(letter, ()):
                # For a pattern an apostrophe ends a word; `words_of` takes "don't" for one word.
                if begins and place and word[place - 1] != "'":
                    continue
                end = place + len(text)
                if ends and end < len(word) and word[end] != "'":
                    continue
                if word.startswith(text, place):
                    found |= bits
        return found


# ------------------------------------------------------------------------------------------------ reading a pattern


def _clauses_of_sequence(parts: Iterable[Any], begins: bool, ends: bool) -> list[Clause]:
    """Clauses of a concatenation, whose two ends may be edges (see `_is_edge_beyond`)."""
    named = _with_names(parts)
    edges = _edges(named, begins, ends)
    found: list[Clause] = []
    literal, start = "", 0
    for place, (name, value) in enumerate((*named, ("END", None))):
        if name == "LITERAL" and (fold(chr(value)).isascii() or not chr(value).isalpha()):
            start = start if literal else place
            literal += fold(chr(value))
            continue
        if literal:
            found += _clauses_of_literal(literal, edges[start], edges[place])
            literal = ""
        if name == "SUBPATTERN":
            found += _clauses_of_sequence(value[3], edges[place], edges[place + 1])
        elif name == "ATOMIC_GROUP":
            found += _clauses_of_sequence(value, edges[place], edges[place + 1])
        elif name in _REPEATS and value[0] > 0:
            once = value[1] == 1
            found += _clauses_of_sequence(value[2], once and edges[place], once and edges[place + 1])
        elif name == "BRANCH":
            found += _clauses_of_branches(
                [_clauses_of_sequence(branch, edges[place], edges[place + 1]) for branch in value[1]]
            )
    return sorted(found, key=_selectivity)[:MOST_CLAUSES]


def _clauses_of_literal(literal: str, begins: bool, ends: bool) -> list[Clause]:
    words = list(word_matches(literal))
    if not words:
        return [frozenset([RequiredText(literal, False, False)])]
    return [
        frozenset(
            [
                RequiredText(
                    word[0],
                    word.start() > 0 or (begins and word[0][0].isalnum()),
                    word.end() < len(literal) or (ends and word[0][-1].isalnum()),
                )
            ]
        )
        for word in words
    ]


def _clauses_of_branches(branches: list[list[Clause]]) -> list[Clause]:
    """Clauses of an alternation: a match fulfils all clauses of one branch, so the n-th clause of some branch."""
    if not all(branches):
        return []
    longest = max(len(branch) for branch in branches)
    return [
        frozenset().union(*(branch[min(place, len(branch) - 1)] for branch in branches)) for place in range(longest)
    ]


_COMMON = """a an and are as be for from have i in is it let me need no not now of on or so that the there this to was
we what when will with you your"""
_COMMON_WORDS = frozenset(_COMMON.split())
"""Words of nearly every sentence: a clause with one of them is hardly selective."""


def _selectivity(clause: Clause) -> tuple[int, int, int]:
    """Sort key, the most selective first: without common words and signs, then longer words, then fewer."""
    common = sum(item.text in _COMMON_WORDS or not item.is_word for item in clause)
    return common, -min(3, min(len(item.text) for item in clause)), len(clause)


_REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_EDGES = frozenset({"AT_BOUNDARY", "AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING"})
_NO_LETTER = frozenset({"CATEGORY_SPACE", "CATEGORY_NOT_WORD"})


def _with_names(parts: Iterable[Any]) -> list[tuple[str, Any]]:
    return [(str(kind), value) for kind, value in parts]


def _edges(parts: Sequence[tuple[str, Any]], begins: bool, ends: bool) -> list[bool]:
    """For the place before each part, and that behind the last, whether the pattern ensures that it is an edge."""
    before, behind = [begins], [ends]
    for part in parts:
        before.append(_is_edge_beyond(part, before[-1], 1))
    for part in reversed(parts):
        behind.append(_is_edge_beyond(part, behind[-1], -1))
    return [one or other for one, other in zip(before, reversed(behind), strict=True)]


def _is_edge_beyond(part: tuple[str, Any], edge: bool, step: int) -> bool:
    """Whether the far side of a part is an edge: a place without a letter, digit or underscore on one of its sides.

    `edge`: the near side is one; `step`: 1 from left to right, -1 from right to left.
    """
    name, value = part
    if name == "AT":
        return str(value) in _EDGES or edge
    if name in ("ASSERT", "ASSERT_NOT"):
        return edge  # zero width
    if name == "LITERAL":
        return not (chr(value).isalnum() or chr(value) == "_")
    if name == "IN":
        return all(
            _is_edge_beyond((kind, member), False, step) if kind == "LITERAL" else str(member) in _NO_LETTER
            for kind, member in _with_names(value)
        )
    if name == "BRANCH":
        return all(_is_edge_beyond_all(branch, edge, step) for branch in value[1])
    if name == "SUBPATTERN":
        return _is_edge_beyond_all(value[3], edge, step)
    if name == "ATOMIC_GROUP":
        return _is_edge_beyond_all(value, edge, step)
    if name in _REPEATS:
        # If it may be repeated, the near side of a later repetition is unknown.
        return _is_edge_beyond_all(value[2], edge and value[1] == 1, step) and (edge or value[0] > 0)
    return False


def _is_edge_beyond_all(parts: Iterable[Any], edge: bool, step: int) -> bool:
    for part in _with_names(parts)[::step]:
        edge = _is_edge_beyond(part, edge, step)
    return edge
