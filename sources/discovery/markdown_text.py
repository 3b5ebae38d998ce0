"""Make foreign text plain: on one line, without markup, and without characters that hide or reorder text."""

from __future__ import annotations

from contextlib import suppress
from html.parser import HTMLParser

from ...runtime.safe_text import visible

MAX_TITLE_CHARACTERS = 120
MAX_DESCRIPTION_CHARACTERS = 600
MAX_MARKUP_CHARACTERS = 200_000
"""Most characters of an entry's HTML that are read."""

_SILENT = frozenset({"script", "style", "template", "noscript", "iframe", "object", "svg", "head", "textarea"})


def plain_line(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters, without those that nobody sees."""
    line = " ".join(visible(text[: limit * 20]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def text_of_html(markup: str) -> str:
    """Return the text of HTML that a reader would see, on one line."""
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
