"""Pages for a person: whether their site lets us read them (robots.txt), and their text without menus and scripts."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit
from urllib.robotparser import RobotFileParser

from .fetch import USER_AGENT, Fetcher, FetchFailed, Page

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


ROBOTS_PATH = "/robots.txt"


class Robots:
    """What a site's robots.txt asks of us. Asks each site once; kept for the life of the object.

    For pages; an API that is published for programs is not asked.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, RobotFileParser | str] = {}
        """By site: its rules, or why nothing of it may be fetched; '' where everything may."""

    def refusal(self, url: str) -> str:
        """Why our name may not fetch it; '' if it may: all of a site without the file, nothing of one that fails
        (RFC 9309).

        Raises FetchRefused; FetchFailed where nobody answered at all.
        """
        parts = urlsplit(url)
        site = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        if site not in self._rules:
            self._rules[site] = self._read(site)
        rules = self._rules[site]
        if isinstance(rules, str):
            return rules
        return "" if rules.can_fetch(USER_AGENT, url) else "its robots.txt asks us not to read it"

    def _read(self, site: str) -> RobotFileParser | str:
        try:
            page = self._fetcher.get(site + ROBOTS_PATH)
        except FetchFailed as error:
            if error.status is None:
                raise
            is_open = 400 <= error.status < 500 and error.status != 429
            return "" if is_open else f"its robots.txt cannot be read (status {error.status})"
        rules = RobotFileParser()
        rules.parse(page.text.splitlines())
        return rules
