"""An item of a source: a title, an address and a description, as the source gives them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..web.decoding import whole_characters
from .markdown_text import MAX_DESCRIPTION_CHARACTERS, MAX_TITLE_CHARACTERS, plain_line

MAX_LISTED = 20_000
"""Most items of a source; the rest is left out."""


_BEFORE_HOST = re.compile(r"^(https?://)[^/?#\\\s]*@", re.IGNORECASE)


@dataclass(frozen=True)
class SourceItem:
    """One item of a source. All of it is foreign text, on one line."""

    url: str
    """Absolute, as the source gives it, but without user name and password."""
    title: str
    description: str = ""
    anchor: str = ""
    """Part of the page `url`, for a source with several items on one page; else ''."""
    identity: str = ""
    """The source's own id, such as that of a feed's entry; '' if there is only the address."""
    day: str = ""
    """ISO date on which a feed's entry was published; '' if it does not say."""


def page_address(url: str) -> str:
    """Return the address of a page without query and fragment, which may hold the reader's own key."""
    return url.partition("#")[0].partition("?")[0]


def source_item(
    url: str, title: str, description: str = "", *, anchor: str = "", identity: str = "", day: str = ""
) -> SourceItem:
    """Make an item with its texts cleaned and cut, and its address without a user name, which may look like a host."""
    url = _BEFORE_HOST.sub(r"\1", whole_characters(url))
    name = plain_line(title, MAX_TITLE_CHARACTERS)
    line = plain_line(description, MAX_DESCRIPTION_CHARACTERS)
    return SourceItem(url, name, line, whole_characters(anchor), whole_characters(identity[:500]), day)
