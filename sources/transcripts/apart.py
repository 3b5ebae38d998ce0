"""Find the parts of a message that are marked as another's words: by quotation marks, indentation, line marks or tags.

Only certain marks count. Where there is none, `pipelines/reading/surroundings.py` judges whose the words are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FORM = re.compile(
    r"""
      (?:\ {4}|\t)\s*\S                                       # indented
    | \s*(?:>|\||│|┃|⏺|⎿|❯|➜|//|/\*|\*/|<!--|<{7}|={7}|>{7}|@@|\+\+\+|---)
    | \s*</?[A-Za-z][^<>]{0,200}>
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"\"[^\"\n]{12,2000}\"|“[^”\n]{12,2000}”|(?<!\w)'[^'\n]{12,2000}'(?!\w)"
    r"|«[^»\n]{12,2000}»|„[^“”\n]{12,2000}[“”]|「[^」\n]{6,2000}」"
)
_TAG_LINE = re.compile(r"\s*<(/?)([A-Za-z][\w:.-]{0,60})(?:\s[^<>]*)?>\s*\Z")


def apart_ranges(text: str, known: Iterable[tuple[int, int]] = ()) -> tuple[tuple[int, int], ...]:
    """Return the ranges [start, end) of a message that are marked as another's words, in order and without overlaps.

    `known`: such ranges that are known already.
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted([*(match.span() for match in _QUOTED.finditer(text)), *_in_form(text), *known]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif start < end:
            merged.append((start, end))
    return tuple(merged)


def _in_form(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that begin with a mark, and the blocks from an opening tag's line to the closing tag's."""
    opened: dict[str, int] = {}
    position = 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        head = line.rstrip("\r\n")[:400]
        if _FORM.match(head):
            yield start, position
        if (tag := _TAG_LINE.match(head)) is None:
            continue
        if not tag.group(1):
            opened.setdefault(tag.group(2), start)
        elif tag.group(2) in opened:
            yield opened.pop(tag.group(2)), position
