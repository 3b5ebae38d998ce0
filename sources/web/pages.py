"""Read web pages: check robots.txt, extract the text without menus and scripts."""

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
"""Types that `readable` can read, for `Fetcher.get`."""
MAX_HTML_CHARS = 1_000_000
MAX_TITLE_CHARS = 200
_SPANS = re.compile(r"(?<=[\s/\"'])(?:col|row)span\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]*)", re.IGNORECASE)
"""Spans of table cells, which are removed because the extractor repeats the cell."""
MOST_TABLE_TAGS = 10_000
"""Most tags of cells and tables. With more they are read as text, since the extractor fills rows up to the widest."""
_ROW = re.compile(r"<tr\b[^<>]*>", re.IGNORECASE)
_OF_TABLES = re.compile(r"</?(?:table|caption|colgroup|col|thead|tbody|tfoot|tr|t[dh])\b[^<>]*>", re.IGNORECASE)


@dataclass(frozen=True)
class Readable:
    """Title and text of a page."""

    title: str
    """On one line; '' if the page has none."""
    text: str
    """Paragraphs between blank lines; '' if nothing was found."""


def readable(page: Page) -> Readable:
    """Return title and text of an HTML or plain text page. Loads trafilatura (0.1 s), so use it in child processes."""
    text = page.text[:MAX_HTML_CHARS]
    if page.content_type in PLAIN_TYPES:
        return Readable("", text.strip())
    import trafilatura

    text = _SPANS.sub("", text)
    plain, tags = _OF_TABLES.subn(" ", _ROW.sub("<p>", text))
    text = plain if tags > MOST_TABLE_TAGS else text
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # It logs every unusual page as an error.
    found = trafilatura.bare_extraction(text, include_comments=False, include_tables=True, with_metadata=True)
    if found is None or isinstance(found, dict):
        return Readable("", "")
    title = " ".join((found.title or "").split())[:MAX_TITLE_CHARS]
    return Readable(title, (found.text or "").strip())


ROBOTS_PATH = "/robots.txt"


class Robots:
    """Checks the robots.txt of sites, each of which is requested once. Not needed for APIs."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, RobotFileParser | str] = {}
        """By site: its rules, or why nothing may be fetched; '' if everything may."""

    def refusal(self, url: str) -> str:
        """Return why a URL may not be fetched; '' if it may.

        By RFC 9309 everything of a site without the file may be fetched, and nothing if requesting the file fails.
        Raises FetchRefused; FetchFailed if there was no answer.
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
