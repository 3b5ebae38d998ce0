"""Compare two texts side by side, by line and by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

MAX_LINES = 400
"""Lines that are aligned, which takes quadratic time; the rest is paired in order."""
MAX_WORDS = 400
_WORDS = re.compile(r"\s+|[^\s\w]|\w+")


class Part(NamedTuple):
    """A piece of a line; `differs`: only this side has it."""

    text: str
    differs: bool


class Row(NamedTuple):
    """One line of each side; None if the side has none."""

    old: list[Part] | None
    new: list[Part] | None


def side_by_side(old: str, new: str) -> list[Row]:
    """The rows of a table with the old text on the left and the new one on the right."""
    left, right = old.splitlines(), new.splitlines()
    codes = SequenceMatcher(None, left[:MAX_LINES], right[:MAX_LINES], autojunk=False).get_opcodes()
    rows = [_row(one, other) for _, i1, i2, j1, j2 in codes for one, other in zip_longest(left[i1:i2], right[j1:j2])]
    return rows + [_whole(one, other) for one, other in zip_longest(left[MAX_LINES:], right[MAX_LINES:])]


def _row(old: str | None, new: str | None) -> Row:
    one, other = _WORDS.findall(old or ""), _WORDS.findall(new or "")
    if old is None or new is None or old == new or max(len(one), len(other)) > MAX_WORDS:
        return _whole(old, new)
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return Row(
        [*_parts(one, [(tag, i1, i2) for tag, i1, i2, _, _ in codes])],
        [*_parts(other, [(tag, j1, j2) for tag, _, _, j1, j2 in codes])],
    )


def _whole(old: str | None, new: str | None) -> Row:
    """A row whose words are not compared, which takes quadratic time."""
    return Row(*(None if line is None else [Part(line, old != new)] for line in (old, new)))


def _parts(words: Sequence[str], codes: Sequence[tuple[str, int, int]]) -> Iterator[Part]:
    for tag, start, end in codes:
        if start < end:
            yield Part("".join(words[start:end]), tag != "equal")
