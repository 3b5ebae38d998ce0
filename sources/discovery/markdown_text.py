"""Foreign text made harmless to read: one line, without markup, without characters that hide or turn text."""

from __future__ import annotations

import html
import re
import unicodedata
from contextlib import suppress
from html.parser import HTMLParser

MAX_TITLE_CHARACTERS = 120
MAX_DESCRIPTION_CHARACTERS = 600
MAX_MARKUP_CHARACTERS = 200_000
"""Of one entry's HTML more is not read."""

_SILENT = frozenset({"script", "style", "template", "noscript", "iframe", "object", "svg", "head", "textarea"})
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_JOINERS = re.compile("[\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\U000e0000-\U000e0fff]")


def plain_line(text: str, limit: int) -> str:
    """One line of at most `limit` characters: no control, bidi, zero-width, private or tag characters."""
    text = _JOINERS.sub("", text[: limit * 20])
    kept = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in _INVISIBLE)
    line = " ".join(kept.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def text_of_html(markup: str) -> str:
    """The text that a reader of the page would see, in one line; scripts and styles are none."""
    if "<" not in markup and "&" not in markup:
        return " ".join(markup.split())
    reader = _Text()
    with suppress(AssertionError, ValueError):  # html.parser gives up on some malformed declarations
        reader.feed(markup[:MAX_MARKUP_CHARACTERS])
        reader.close()
    return " ".join("".join(reader.parts).split())


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        self.parts.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def unescape(text: str) -> str:
    """`&nbsp;` and its like as the characters they stand for."""
    return html.unescape(text) if "&" in text else text
