"""Cut a message into sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...runtime.function_words import ENGLISH

_LINE = re.compile(r"[^\n]+")
_MARKER = re.compile(r"\s*(?:[-*+•–]\s+|\(?\d{1,3}[.)]\s+|\(?[a-z][.)]\s+|#{1,6}\s+|>\s*)*", re.IGNORECASE)
"""Matches what opens a line of a list, a heading or a quotation."""
_ITEM = re.compile(r"[-*+•–]\s|\(?\d{1,3}[.)]\s")
_END = re.compile(
    r"[.!?…]+[\"'”’)\]*_`]*(?=\s)|[。！？]+"
    r"|[,;]?(?=\s+(?:and|but) (?:please )?(?:(?:remember|keep in mind) that|from now on|going forward)\b)",
    re.IGNORECASE,
)
"""Matches the end of a sentence. A request to remember begins a new one: before "and" there may be an order."""
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.?g|i\.?e|etc|vs|cf|approx|resp|incl|dr|mr|mrs|[a-z])\.$", re.IGNORECASE)
_LETTERS = re.compile(r"(?:^|[\s(])(?:[a-z]\.){2,}$", re.IGNORECASE)
"""Matches letters with stops: "a.m.", "U.S."."""
_NUMBER = re.compile(r"(?:^|[\s(])(\d{1,2})\.$")
_AFTER_WORD = re.compile(r"(\w+)\s+\d{1,2}(\.\d{1,2})?\.$")
_WORD = re.compile(r"\s+([a-z]\w*)")
_LIST_CHARS = 600
"""Characters before a number in which the one before it is looked for."""
_WRAPPED_CHARS = 60
"""A line of at least this length without a stop is continued by the next line, if that begins in lower case."""
_STOPS = (".", "!", "?", ":", ";", "。", "！", "？")


@dataclass(frozen=True)
class Sentence:
    """Characters [start, end) of a message, without list marker and surrounding white space."""

    start: int
    end: int
    paragraph: int
    """Number of its paragraph in the message: blank lines and list items begin a new one."""
    is_item: bool = False
    """Whether its paragraph is an item of a list."""

    def of(self, text: str) -> str:
        """Return the words of the sentence."""
        return text[self.start : self.end]


def sentences(text: str) -> list[Sentence]:
    """Cut `text` at ends of sentences, line breaks and list items. Nothing but white space and markers is left out."""
    found: list[Sentence] = []
    for number, (start, end) in enumerate(_paragraphs(text)):
        is_item = _ITEM.search(text, text.rfind("\n", 0, start) + 1, start) is not None
        position = start
        for stop in _END.finditer(text, start, end):
            if not _goes_on(text, start, stop.start()):
                _add(found, text, position, stop.end(), number, is_item)
                position = stop.end()
        _add(found, text, position, end, number, is_item)
    return found


def _goes_on(text: str, start: int, stop: int) -> bool:
    """Whether a sentence goes on behind the sign at `stop`: of an abbreviation ("9 a.m. on Mondays"), of a number
    that counts ("do it so: 1. build 2. push", "3. Oktober"), or of a date ("on 24.12. we rest")."""
    if _ABBREVIATION.search(text, max(start, stop - 8), stop + 1):
        return True
    if (behind := _WORD.match(text, stop + 1, stop + 30)) is not None:
        if _LETTERS.search(text, max(start, stop - 8), stop + 1):
            return True
        # "the 3. of each", but not "version 3. never break it".
        date = _AFTER_WORD.search(text, max(start, stop - 30), stop + 1)
        if date is not None and date[1].lower() in ENGLISH and (date[2] or behind[1] in ENGLISH):
            return True
    number = _NUMBER.search(text, max(start, stop - 3), stop + 1)
    if number is None:
        return False
    line = text.rfind("\n", 0, start) + 1
    counts = number[1] == "1" or f"{int(number[1]) - 1}. " in text[max(line, stop - _LIST_CHARS) : stop]
    return counts or text[stop + 1 : stop + 9].lstrip()[:1].isupper()


def _paragraphs(text: str) -> list[tuple[int, int]]:
    """Return the ranges of lines; a wrapped line is joined with the next one."""
    ranges: list[tuple[int, int]] = []
    for line in _LINE.finditer(text):
        if not line[0].strip():
            continue
        marker = _MARKER.match(line[0])
        start = line.start() + (marker.end() if marker is not None else 0)
        if start >= line.end():
            continue
        if ranges and start == line.start() + len(line[0]) - len(line[0].lstrip()):
            before = text[ranges[-1][0] : ranges[-1][1]].rstrip()
            joins = text.count("\n", ranges[-1][1], start) == 1 and text[start].islower()
            if joins and len(before) - (before.rfind("\n") + 1) >= _WRAPPED_CHARS and not before.endswith(_STOPS):
                ranges[-1] = (ranges[-1][0], line.end())
                continue
        ranges.append((start, line.end()))
    return ranges


def _add(found: list[Sentence], text: str, start: int, end: int, paragraph: int, is_item: bool) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if any(char.isalnum() for char in text[start:end]):
        found.append(Sentence(start, end, paragraph, is_item))
