"""A text as the words that mining looks at, with what is known of each word kept: most words come again.

What is kept is bounded, so that memory stays flat however much is read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from .gated import fold

MOST_KEPT = 20_000
"""Words; beyond that all are forgotten."""
BUCKETS = 4096
"""Hash buckets for n-grams. At some 10,000 distinct n-grams in training, collisions cost less than size does."""
LONGEST_KEPT = 40
"""Characters; a longer "word" is a key or a path, and does not come again."""

_Value = TypeVar("_Value")
_WORD = re.compile(r"[a-z']+|[?!]|\d+|[😀-🙏🌀-🗿🤀-🧿]")
_START = zlib.crc32(b"^")


_KEPT_SIGNS = b"abcdefghijklmnopqrstuvwxyz0123456789'?!\n"
_BLANKED = bytes(code if code in _KEPT_SIGNS else 32 for code in bytes(range(256)).lower())
_FIRST_OF_WORDS = {*range(0xD9, 0xE2), 0xEA, *range(0xEF, 0x100)}
"""Bytes with which, in UTF-8, emoji and digits that are not ASCII begin. Other letters and signs are no part of a
word."""
_FIRST_OF_FOLDED = {0xC3, 0xC4, 0xC5, 0xC7}
"""And those of letters that are ASCII when they are folded, but for one: the sign of kelvin."""
_NO_WORDS = bytes({*range(256)} - _FIRST_OF_WORDS)
_NO_WORDS_AS_IT_IS = bytes({*_NO_WORDS} - _FIRST_OF_FOLDED)
_KELVIN = "\u212a"
_NUMBER_IN_WORD = re.compile(rb"[0-9](?:(?=[a-z'])|(?<=[a-z'][0-9]))")
_EDGE_OF_NUMBER = re.compile(rb"(?<=[0-9])(?=[a-z'])|(?<=[a-z'])(?=[0-9])")


def words_of(folded: str) -> list[str]:
    """The words, numbers, question and exclamation marks and emoji of a lower-case text, in order."""
    plain = _plain(folded, _NO_WORDS)
    return _WORD.findall(folded) if plain is None else plain.split()


def words_in(text: str) -> list[str]:
    """The same of a text in whatever case."""
    plain = None if _KELVIN in text else _plain(text, _NO_WORDS_AS_IT_IS)
    return words_of(fold(text)) if plain is None else plain.split()


def words_of_lines(text: str) -> list[list[str]] | None:
    """The same of each line of a text in whatever case; None where it has to be folded first."""
    plain = None if _KELVIN in text else _plain(text, _NO_WORDS_AS_IT_IS)
    return None if plain is None else [line.split() for line in plain.split("\n")]


def _plain(text: str, no_words: bytes) -> str | None:
    """The text with blanks around its words and nothing else, which costs a fifth of the pattern; None where only the
    pattern knows: it holds others than the bytes `no_words`."""
    if text.isascii():
        coded = text.encode("ascii")
    else:
        coded = text.encode("utf-8", "surrogatepass")
        if coded.translate(None, no_words):
            return None
    plain = coded.translate(_BLANKED)
    if b"?" in plain or b"!" in plain:
        plain = plain.replace(b"?", b" ? ").replace(b"!", b" ! ")
    if _NUMBER_IN_WORD.search(plain):
        plain = _EDGE_OF_NUMBER.sub(b" ", plain)
    return plain.decode("ascii")


def word_matches(folded: str) -> Iterator[re.Match[str]]:
    """The same with their places."""
    return _WORD.finditer(folded)


def kept(known: dict[str, _Value], word: str, value: _Value) -> _Value:
    """Store what was found out about a word, forgetting all others when they become too many; returns it."""
    if len(word) <= LONGEST_KEPT:
        if len(known) >= MOST_KEPT:
            known.clear()
        known[word] = value
    return value


class Hashed(NamedTuple):
    """What n-grams need to know of a word. All numbers are one word."""

    checksum: int
    """Its crc32."""
    bucket: int
    """That of the word alone."""
    following: bytes
    """Its bytes behind a space: what a pair of words adds to the checksum of the first."""

    @classmethod
    def of(cls, word: str) -> Hashed:
        spelled = b"#" if word.isdigit() else word.encode()
        checksum = zlib.crc32(spelled)
        return cls(checksum, checksum % BUCKETS, b" " + spelled)


def hashed_ngrams(words: Sequence[str]) -> set[int]:
    """The buckets of the words and of each two neighbours, the beginning ("^") being a neighbour too."""
    return buckets_of(*zip(*map(Hashed.of, words), strict=True)) if words else set()


def buckets_of(checksums: Sequence[int], buckets: Sequence[int], following: Sequence[bytes]) -> set[int]:
    """The same of words that are known."""
    # The checksum of "a b" goes on from that of "a".
    found = {checksum % BUCKETS for checksum in map(zlib.crc32, following, (_START, *checksums))}
    found.update(buckets)
    return found
