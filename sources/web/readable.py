"""The text of a web page that a person would read, without menus, banners and scripts."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from .fetch import Page

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
PLAIN_TYPES = frozenset({"text/plain", "text/markdown", "text/x-markdown", "text/x-rst"})
READABLE_TYPES = HTML_TYPES | PLAIN_TYPES
"""What `readable` can read, for `Fetcher.get`."""
MAX_HTML_CHARS = 1_000_000
MAX_TITLE_CHARS = 200
_SPANS = re.compile(r"\s(?:col|row)span\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]*)", re.IGNORECASE)
"""How many columns or rows a cell takes, which says nothing to a reader: the extractor makes as many cells of it."""


@dataclass(frozen=True)
class Readable:
    """What was read of one page."""

    title: str
    """One line; '' if the page has none."""
    text: str
    """Paragraphs between blank lines; '' if nothing was found."""


def readable(page: Page) -> Readable:
    """Title and text of an HTML or plain text page. Takes trafilatura (0.1 s to load): for child processes."""
    text = page.text[:MAX_HTML_CHARS]
    if page.content_type in PLAIN_TYPES:
        return Readable("", text.strip())
    import trafilatura

    text = _SPANS.sub("", text)
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # It reports each odd page as an error.
    found = trafilatura.bare_extraction(text, include_comments=False, include_tables=True, with_metadata=True)
    if found is None or isinstance(found, dict):
        return Readable("", "")
    title = " ".join((found.title or "").split())[:MAX_TITLE_CHARS]
    return Readable(title, (found.text or "").strip())
