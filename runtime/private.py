"""Passages that a user marked `<private>…</private>`: where they begin and end.

Shared by the readers of transcripts and the scrubber, so that both leave out the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PRIVATE_MARK = "[private]"
BLANKS = 100
"""Most characters between a passage and the rest of its line."""

_TAG = re.compile(r"(?:<|&lt;)\s{0,3}(?P<closes>/?)\s{0,3}private(?:\s[^<>]{0,100}?)?\s{0,3}(?:>|&gt;)", re.IGNORECASE)


def find_private_spans(text: str) -> list[tuple[int, int]]:
    """Return [start, end) of each passage with its tags, in order, not overlapping; a nested one is part of the outer.

    A passage that is not closed extends to the end of the text: losing words is better than keeping private ones. A
    closing tag without an opening one is ignored. Time is linear in the length of the text.
    """
    spans: list[tuple[int, int]] = []
    opened: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        if not tag.group("closes"):
            opened.append(tag)
        elif opened:
            start = opened.pop().start()
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, tag.end()))
    # "the `<private>` tag": a name in a sentence, unless something closes it.
    unclosed = next((tag for tag in opened if not _is_quoted(text, tag)), None)
    if unclosed is None:
        return spans
    return [span for span in spans if span[0] < unclosed.start()] + [(unclosed.start(), len(text))]


def strip_private(text: str) -> str:
    """Return the text without its private passages. A closing tag without an opening one ends a passage from the
    beginning."""
    return _replace_private(text, lambda start, end: "")


def mark_private(text: str) -> str:
    """The same, with PRIVATE_MARK for each passage inside a sentence, since the rest alone would mean something
    else."""

    def mark(start: int, end: int) -> str:
        before = text[max(0, start - BLANKS) : start].rstrip(" \t")
        after = text[end : end + BLANKS].lstrip(" \t")
        opens = not before or before[-1] in "\n.!?…"
        closes = not after or after[0] == "\n" or after[0].isupper()
        return "" if opens and closes else PRIVATE_MARK

    return _replace_private(text, mark)


def _replace_private(text: str, mark: Callable[[int, int], str]) -> str:
    parts: list[str] = []
    position = 0
    for start, end in find_private_spans(text):
        parts += (text[position:start], mark(start, end))
        position = end
    rest = "".join([*parts, text[position:]])
    closing = [tag.end() for tag in _TAG.finditer(rest) if tag.group("closes") and not _is_quoted(rest, tag)]
    return rest[closing[-1] :] if closing else rest


def _is_quoted(text: str, tag: re.Match[str]) -> bool:
    return text[max(0, tag.start() - 1) : tag.start()] == "`" == text[tag.end() : tag.end() + 1]
