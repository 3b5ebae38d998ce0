"""A text as the words that mining looks at, with what is known of each word kept: most words come again.

What is kept is bounded, so that memory stays flat however much is read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from .gated import GatedPattern

if TYPE_CHECKING:
    _Numbers = dict[str, int]
    _Bytes = dict[str, bytes]
else:
    _Numbers = _Bytes = dict

MOST_KEPT = 20_000
"""Words; beyond that all are forgotten."""
LONGEST_KEPT = 40
"""Characters; a longer "word" is a key or a path, and does not come again."""

_Value = TypeVar("_Value", int, bytes)
_WORD = re.compile(r"[a-z']+|[?!]|\d+|[😀-🙏🌀-🗿🤀-🧿]")
_START = zlib.crc32(b"^")


def words_of(folded: str) -> list[str]:
    """The words, numbers, question and exclamation marks and emoji of a lower-case text, in order."""
    return _WORD.findall(folded)


class _Checksums(_Numbers):
    """Word -> its crc32. All numbers are one word."""

    def __missing__(self, word: str) -> int:
        return _kept(self, word, zlib.crc32(_bytes_of(word)))


class _Following(_Bytes):
    """Word -> its bytes behind a space: what a pair of words adds to the first one's checksum."""

    def __missing__(self, word: str) -> bytes:
        return _kept(self, word, b" " + _bytes_of(word))


def _bytes_of(word: str) -> bytes:
    return b"#" if word.isdigit() else word.encode()


def _kept(known: dict[str, _Value], word: str, value: _Value) -> _Value:
    if len(word) <= LONGEST_KEPT:
        if len(known) >= MOST_KEPT:
            known.clear()
        known[word] = value
    return value


_checksum_of = _Checksums().__getitem__
_following = _Following().__getitem__


def hashed_ngrams(words: Sequence[str], buckets: int) -> set[int]:
    """The buckets of the words and of each two neighbours, the beginning ("^") being a neighbour too."""
    single = [*map(_checksum_of, words)]
    # The checksum of "a b" goes on from that of "a".
    pairs = map(zlib.crc32, map(_following, words), [_START, *single])
    return {checksum % buckets for checksum in chain(single, pairs)}


class WordGates:
    """The gates of many patterns at once, each a bit of a number: a look at each word instead of one for each gate.

    Of a gate's string only its longest word is looked for, anywhere in the words of a text. So this lets more through
    than `GatedPattern.may_match`, and never less.
    """

    def __init__(self, patterns: Mapping[str, GatedPattern]) -> None:
        self.bits: Mapping[str, int] = {name: 1 << place for place, name in enumerate(patterns)}
        self._always = 0
        self._elsewhere: list[tuple[str, int]] = []
        parts: dict[str, int] = {}
        for name, pattern in patterns.items():
            bit = self.bits[name]
            if not pattern.stems:
                self._always |= bit
            for stem in pattern.stems:
                part = max(words_of(stem), key=len, default="")
                if part:
                    parts[part] = parts.get(part, 0) | bit
                else:
                    self._elsewhere.append((stem, bit))
        self._opened_by = _Opened(parts)

    def open_to(self, words: Sequence[str], folded: str) -> int:
        """The bits of all patterns that may match in a text; `words` are `words_of(folded)`."""
        found = self._always
        opened_by = self._opened_by
        for word in words:
            found |= opened_by[word]
        for stem, bit in self._elsewhere:
            if stem in folded:
                found |= bit
        return found


class _Opened(_Numbers):
    """Word -> the bits of the gates that it opens, for holding one of their words."""

    def __init__(self, parts: Mapping[str, int]) -> None:
        super().__init__()
        self._of_one = {part: bits for part, bits in parts.items() if len(part) == 1}
        self._by_start: dict[str, list[tuple[str, int]]] = {}
        for part, bits in parts.items():
            if len(part) > 1:
                self._by_start.setdefault(part[:2], []).append((part, bits))

    def __missing__(self, word: str) -> int:
        found = 0
        for part, bits in self._of_one.items():
            if part in word:
                found |= bits
        for place in range(len(word) - 1):
            for part, bits in self._by_start.get(word[place : place + 2], ()):
                if word.startswith(part, place):
                    found |= bits
        return _kept(self, word, found)
