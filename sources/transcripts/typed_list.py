"""A host's list of the lines entered at its prompt, kept beside its sessions: only a person adds to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ...vault.wording import one_line
from .lines import as_text, complete_lines, parse_object
from .whose_words import entered_text, own_text

NAME = "history.jsonl"
MAX_LINE_BYTES = 1 << 20
FARTHEST = 10**18
"""A larger time, in thousandths of a second or seconds, is none."""
_PASTED = re.compile(r"\[(?:Pasted text|\.\.\.Truncated text) #\d+(?: \+\d+ lines)?(?:\.\.\.)?\]")
"""What Claude Code's list has in the place of a long pasted text."""


class Fields(NamedTuple):
    """Names of the fields in which a host writes its list, and the units per second of its times."""

    words: str
    session: str
    time: str
    per_second: int


@dataclass
class TypedList:
    """The lines entered since a session began, and whether any was entered in that session."""

    knows_session: bool = False
    _whole: set[str] = field(default_factory=set)
    _around: list[list[str]] = field(default_factory=list)
    """Of lines with pasted text: the typed pieces before, between and behind."""

    def add(self, words: str) -> None:
        if text := entered_text(words):
            first, *others = _PASTED.split(words)
            if others:
                self._around.append([entered_text(first), *map(own_text, others)])
            else:
                self._whole.add(one_line(text))

    def pasted_in(self, text: str) -> tuple[tuple[int, int], ...] | None:
        """Return the ranges of the text that were pasted, according to the list; None if the text was not entered."""
        if one_line(text) in self._whole:
            return ()
        return next((gaps for pieces in self._around if (gaps := _gaps(text, pieces)) is not None), None)


NO_LIST = TypedList()


def read_typed_list(path: Path, fields: Fields, session: str, since: str) -> TypedList:
    """Read what was entered in the session, or in any other since it began at `since` (ISO 8601).

    The others count because a fork holds what was entered in the original. A file that is missing or no list gives an
    empty list.
    """
    typed = TypedList()
    begin = _seconds(since)
    for where, at, words in _entries(path, fields) if path.is_file() else ():
        if where == session or at >= begin:
            typed.knows_session = typed.knows_session or where == session
            typed.add(words)
    return typed


def _entries(path: Path, fields: Fields) -> Iterator[tuple[str, float, str]]:
    try:
        for line in complete_lines(path, max_bytes=MAX_LINE_BYTES):
            entry = None if line.too_long else parse_object(line.data)
            time = entry.get(fields.time) if entry else None
            if entry and isinstance(time, int) and abs(time) < FARTHEST:
                yield as_text(entry.get(fields.session)), time / fields.per_second, as_text(entry.get(fields.words))
    except OSError:
        return


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float("inf")


def _gaps(text: str, pieces: list[str]) -> tuple[tuple[int, int], ...] | None:
    """The ranges between the pieces, if the text consists of them in their order; None if it does not."""
    last = len(text) - len(pieces[-1])
    if not (text.startswith(pieces[0]) and text.endswith(pieces[-1]) and last >= len(pieces[0])):
        return None
    gaps = []
    position = len(pieces[0])
    for piece in pieces[1:-1]:
        found = text.find(piece, position, last)
        if found < 0:
            return None
        gaps.append((position, found))
        position = found + len(piece)
    return tuple((low, high) for low, high in [*gaps, (position, last)] if low < high)
