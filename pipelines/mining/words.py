"""A text as the words that mining looks at, with what is known of each word kept: most words come again.

What is kept is bounded, so that memory stays flat however much is read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    _Numbers = dict[str, int]
    _Bytes = dict[str, bytes]
else:
    _Numbers = _Bytes = dict

MOST_KEPT = 20_000
"""Words; beyond that all are forgotten."""
BUCKETS = 4096
"""Hash buckets for n-grams. At some 10,000 distinct n-grams in training, collisions cost less than size does."""
LONGEST_KEPT = 40
"""Characters; a longer "word" is a key or a path, and does not come again."""

_Value = TypeVar("_Value", int, bytes)
_WORD = re.compile(r"[a-z']+|[?!]|\d+|[😀-🙏🌀-🗿🤀-🧿]")
_START = zlib.crc32(b"^")


_SIGNS = dict.fromkeys(range(128), " ") | {ord(sign): sign for sign in "abcdefghijklmnopqrstuvwxyz'?!"}
_SIGNS |= {ord(digit): "0" for digit in "0123456789"}


def words_of(folded: str) -> list[str]:
    """The words, numbers, question and exclamation marks and emoji of a lower-case text, in order."""
    if folded.isascii():
        # Most sentences hold nothing but words: to cut them at blanks costs a third of the pattern.
        plain = folded.translate(_SIGNS)
        if "0" not in plain:
            if "?" in plain or "!" in plain:
                plain = plain.replace("?", " ? ").replace("!", " ! ")
            return plain.split()
    return _WORD.findall(folded)


def word_matches(folded: str) -> Iterator[re.Match[str]]:
    """The same with their places."""
    return _WORD.finditer(folded)


class _Checksums(_Numbers):
    """Word -> its crc32. All numbers are one word."""

    def __missing__(self, word: str) -> int:
        return kept(self, word, zlib.crc32(_bytes_of(word)))


class _Following(_Bytes):
    """Word -> its bytes behind a space: what a pair of words adds to the first one's checksum."""

    def __missing__(self, word: str) -> bytes:
        return kept(self, word, b" " + _bytes_of(word))


def _bytes_of(word: str) -> bytes:
    return b"#" if word.isdigit() else word.encode()


def kept(known: dict[str, _Value], word: str, value: _Value) -> _Value:
    """Store what was found out about a word, forgetting all others when they become too many; returns it."""
    if len(word) <= LONGEST_KEPT:
        if len(known) >= MOST_KEPT:
            known.clear()
        known[word] = value
    return value


class _Buckets(_Numbers):
    """Word -> the bucket of its checksum."""

    def __missing__(self, word: str) -> int:
        return kept(self, word, _checksum_of(word) % BUCKETS)


_checksum_of = _Checksums().__getitem__
_following = _Following().__getitem__
_bucket_of = _Buckets().__getitem__


def hashed_ngrams(words: Sequence[str]) -> set[int]:
    """The buckets of the words and of each two neighbours, the beginning ("^") being a neighbour too."""
    before = [_START, *map(_checksum_of, words)]
    # The checksum of "a b" goes on from that of "a".
    found = {checksum % BUCKETS for checksum in map(zlib.crc32, map(_following, words), before)}
    found.update(map(_bucket_of, words))
    return found
