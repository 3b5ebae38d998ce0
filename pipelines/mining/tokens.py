"""Splitting text into tokens (words, numbers, ?, !, emoji), and caching what is known of each: most words recur.

What is kept is bounded, so that memory stays flat however much is read.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from .caseless_pattern import fold

MOST_KEPT = 20_000
"""Most words in a cache; then it is emptied."""
BUCKETS = 4096
"""Hash buckets for n-grams. At some 10,000 distinct n-grams in training, collisions cost less than size does."""
LONGEST_KEPT = 40
"""Longest word that is cached; a longer one is a key or a path, and does not recur."""

_Value = TypeVar("_Value")
_WORD = re.compile(r"[a-z']+|[?!]|\d+|[😀-🙏🌀-🗿🤀-🧿]")
_START = zlib.crc32(b"^")


_KEPT_SIGNS = b"abcdefghijklmnopqrstuvwxyz0123456789'?!\n"
_BLANKED = bytes(code if code in _KEPT_SIGNS else 32 for code in bytes(range(256)).lower())
_FIRST_OF_WORDS = {*range(0xD9, 0xE2), 0xEA, *range(0xEF, 0x100)}
"""First bytes in UTF-8 of emoji and of digits that are not ASCII. Other letters and signs are no part of a word."""
_FIRST_OF_FOLDED = {0xC3, 0xC4, 0xC5, 0xC7}
"""First bytes in UTF-8 of letters that fold to ASCII, except the kelvin sign."""
_NO_WORDS = bytes({*range(256)} - _FIRST_OF_WORDS)
_NO_WORDS_AS_IT_IS = bytes({*_NO_WORDS} - _FIRST_OF_FOLDED)
_KELVIN = "\u212a"
_NUMBER_IN_WORD = re.compile(rb"[0-9](?:(?=[a-z'])|(?<=[a-z'][0-9]))")
_EDGE_OF_NUMBER = re.compile(rb"(?<=[0-9])(?=[a-z'])|(?<=[a-z'])(?=[0-9])")


def words_of(folded: str) -> list[str]:
    """List the words, numbers, question and exclamation marks and emoji of a lower-case text, in order."""
    plain = _plain(folded, _NO_WORDS)
    return _WORD.findall(folded) if plain is None else plain.split()


def words_in(text: str) -> list[str]:
    """List the words of a text of any case, as `words_of` does."""
    plain = None if _KELVIN in text else _plain(text, _NO_WORDS_AS_IT_IS)
    return words_of(fold(text)) if plain is None else plain.split()


def words_of_lines(text: str) -> list[list[str]] | None:
    """List the words of each line of a text of any case; None if it has to be folded first."""
    plain = None if _KELVIN in text else _plain(text, _NO_WORDS_AS_IT_IS)
    return None if plain is None else [line.split() for line in plain.split("\n")]


def _plain(text: str, no_words: bytes) -> str | None:
    """Replace all but words by blanks, in a fifth of the time of the pattern.

    None for a text with bytes outside of ASCII and `no_words`: only the pattern knows whether they are words.
    """
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
    """Yield the words of a folded text as matches."""
    return _WORD.finditer(folded)


def kept(known: dict[str, _Value], word: str, value: _Value) -> _Value:
    """Cache a value of a word, emptying a full cache first; returns the value."""
    if len(word) <= LONGEST_KEPT:
        if len(known) >= MOST_KEPT:
            known.clear()
        known[word] = value
    return value


class TokenHash(NamedTuple):
    """Checksums of a word, from which those of n-grams are computed. All numbers are one word."""

    checksum: int
    """crc32 of the word."""
    bucket: int
    """Bucket of the word alone."""
    following: bytes
    """Its bytes after a space, which a pair of words adds to the checksum of the first."""

    @classmethod
    def of(cls, word: str) -> TokenHash:
        spelled = b"#" if word.isdigit() else word.encode()
        checksum = zlib.crc32(spelled)
        return cls(checksum, checksum % BUCKETS, b" " + spelled)


def hashed_ngrams(words: Sequence[str]) -> set[int]:
    """Buckets of the words and of each two neighbours; the beginning ("^") counts as a neighbour."""
    return buckets_of(*zip(*map(TokenHash.of, words), strict=True)) if words else set()


def buckets_of(checksums: Sequence[int], buckets: Sequence[int], following: Sequence[bytes]) -> set[int]:
    """Buckets as of `hashed_ngrams`, from the cached values of the words."""
    # The checksum of "a b" goes on from that of "a".
    found = {checksum % BUCKETS for checksum in map(zlib.crc32, following, (_START, *checksums))}
    found.update(buckets)
    return found
