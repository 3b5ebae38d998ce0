"""Detect copied text: a note of the watchlist may describe what to adopt, but not contain it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_RUN_WORDS = 7
"""Consecutive words of the source that make a quotation."""
NGRAM_WORDS = 4
MOST_SHARED = 0.10
"""Share of a text's runs of four words that may also be in the source by chance, or as names."""
FEWEST_SHARED = 3
LINE_CHARACTERS = 30
"""Least length, without spaces, of a line of code that counts as copied."""

_URL = re.compile(r"https?://\S+")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_CODE = re.compile(r"[^\w\s.,;:'\"!?-]")


def find_copy(text: str, sources: Iterable[str]) -> str:
    """Return the first sign that `text` copies one of the sources, as a reason to refuse it; '' if there is none.

    Words are compared without case, punctuation and markup, so that reformatting does not hide a copy. Addresses do
    not count.
    """
    words = _words(text)
    lines = [_squeezed(line) for line in _URL.sub(" ", text).splitlines()]
    for source in sources:
        theirs = _words(source)
        if _has_common_run(words, theirs):
            return f"{LONGEST_RUN_WORDS} words in a row are the source's"
        if shared := _shared(words, theirs):
            return shared
        squeezed = {_squeezed(line) for line in _URL.sub(" ", source).splitlines()}
        for line in lines:
            if len(line) >= LINE_CHARACTERS and _CODE.search(line) and line in squeezed:
                return "a line of code is the source's"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(_URL.sub(" ", text).casefold())


def _runs(words: list[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + length]) for at in range(len(words) - length + 1)]


def _has_common_run(words: list[str], theirs: list[str]) -> bool:
    # A shorter source, such as a description of five words, counts as copied when all of it is there.
    length = min(LONGEST_RUN_WORDS, max(4, len(theirs)))
    return not set(_runs(theirs, length)).isdisjoint(_runs(words, length))


def _shared(words: list[str], theirs: list[str]) -> str:
    ours = _runs(words, NGRAM_WORDS)
    known = set(_runs(theirs, NGRAM_WORDS))
    common = sum(run in known for run in ours)
    if common >= FEWEST_SHARED and common > MOST_SHARED * len(ours):
        return f"{common} of {len(ours)} runs of {NGRAM_WORDS} words are the source's"
    return ""


def _squeezed(line: str) -> str:
    return "".join(line.split())
