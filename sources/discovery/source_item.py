"""What a source lists: a name, an address and a line about it, as the source says it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..web.decoding import whole_characters
from .markdown_text import MAX_DESCRIPTION_CHARACTERS, MAX_TITLE_CHARACTERS, plain_line

MAX_LISTED = 20_000
"""A source with more is cut there."""


_BEFORE_HOST = re.compile(r"^(https?://)[^/?#\\\s]*@", re.IGNORECASE)


@dataclass(frozen=True)
class SourceItem:
    """One thing that a source points at. All of it is foreign text, on one line."""

    url: str
    """Absolute, as the source writes it, but for a name or password before the host."""
    title: str
    description: str = ""
    anchor: str = ""
    """Which part of the page `url` is meant, for a source that has its things on one page."""
    identity: str = ""
    """The source's own name for it, such as the id of a feed's entry; '' when the address is all there is."""


def page_address(url: str) -> str:
    """The address of a page as its items may have it: without query and fragment, where the reader's own key may be."""
    return url.partition("#")[0].partition("?")[0]


def source_item(url: str, title: str, description: str = "", *, anchor: str = "", identity: str = "") -> SourceItem:
    """With its text cleaned and cut. `https://github.com@evil.example/` shows another host than it leads to."""
    url = _BEFORE_HOST.sub(r"\1", whole_characters(url))
    name = plain_line(title, MAX_TITLE_CHARACTERS)
    line = plain_line(description, MAX_DESCRIPTION_CHARACTERS)
    return SourceItem(url, name, line, whole_characters(anchor), whole_characters(identity[:500]))
