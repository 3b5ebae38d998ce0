"""Compare two texts side by side, by line and by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

MAX_LINES = 400
"""Lines that are aligned, which takes quadratic time; the rest is paired in order."""
MAX_WORDS = 400
_WORDS = re.compile(r"\s+|[^\s\w]|\w+")


@dataclass(frozen=True)
class Part:
    """A piece of a line; `differs`: only this side has it."""

    text: str
    differs: bool


@dataclass(frozen=True)
class Row:
    """One line of each side; None if the side has none."""

    kind: Literal["same", "changed", "removed", "added"]
    old: tuple[Part, ...] | None
    new: tuple[Part, ...] | None


def side_by_side(old: str, new: str) -> list[Row]:
    """The rows of a table with the old text on the left and the new one on the right."""
    left, right = old.splitlines(), new.splitlines()
    rest = zip_longest(left[MAX_LINES:], right[MAX_LINES:])
    left, right = left[:MAX_LINES], right[:MAX_LINES]
    rows: list[Row] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [Row("same", (Part(line, False),), (Part(line, False),)) for line in left[i1:i2]]
        else:
            rows += [_row(one, other) for one, other in zip_longest(left[i1:i2], right[j1:j2])]
    return rows + [_beside(one, other) for one, other in rest]


def _beside(old: str | None, new: str | None) -> Row:
    """A row of two lines that were not aligned."""
    kind: Literal["same", "changed", "removed", "added"] = (
        "same" if old == new else "removed" if new is None else "added" if old is None else "changed"
    )
    return Row(
        kind,
        None if old is None else (Part(old, old != new),),
        None if new is None else (Part(new, old != new),),
    )


def _row(old: str | None, new: str | None) -> Row:
    if new is None:
        return Row("removed", (Part(old or "", True),), None)
    if old is None:
        return Row("added", None, (Part(new, True),))
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(one), len(other)) > MAX_WORDS:
        return Row("changed", (Part(old, True),), (Part(new, True),))
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return Row(
        "changed",
        tuple(_parts(one, [(tag, i1, i2) for tag, i1, i2, _, _ in codes])),
        tuple(_parts(other, [(tag, j1, j2) for tag, _, _, j1, j2 in codes])),
    )


def _parts(words: Sequence[str], codes: Sequence[tuple[str, int, int]]) -> Iterator[Part]:
    for tag, start, end in codes:
        if start < end:
            yield Part("".join(words[start:end]), tag != "equal")
