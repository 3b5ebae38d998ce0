"""Read the entries of RSS and Atom feeds, also of broken ones."""

from __future__ import annotations

import io
import re
from typing import Any
from urllib.parse import urljoin

from ..web.decoding import whole_references
from .markdown_text import text_of_html
from .source_item import MAX_LISTED, SourceItem, page_address, source_item

MAX_SUMMARY_CHARACTERS = 20_000
_DECLARATION = re.compile(rb"<!DOCTYPE[^\[>]{0,1000}\[", re.IGNORECASE)
_ENCODING = re.compile(rb"\s{0,100}<\?xml[^>]{0,200}?encoding=[\"']([\w.-]{1,40})")
_CROWDED_TAG = re.compile(rb"<[A-Za-z][^<>=]*(?:=[^<>=]*){1000}")
"""feedparser compares the attributes of a tag with each other, which took 24 seconds for 40,000 of them."""
_ENTITY = re.compile(rb"<!ENTITY\s", re.IGNORECASE)


class FeedInvalid(Exception):
    """The bytes are no feed, or a refused one; the message says why."""


def feed_items(body: bytes, url: str, content_type: str = "") -> list[SourceItem]:
    """Return the entries of a feed in its order. Raises FeedInvalid.

    A feed that declares XML entities is refused: no publisher needs them, and they can expand to gigabytes or read a
    file of this machine.
    """
    url = page_address(url)
    if _CROWDED_TAG.search(body):
        raise FeedInvalid("a tag of it has more than 1,000 attributes: refused")
    body = whole_references(body)
    parsed = _parsed(body, url, content_type)
    if not _is_feed(parsed) and (wrong := _ENCODING.match(body)):
        # Single bytes declared as UTF-16, which cannot be true if the declaration is readable.
        parsed = _parsed(body[: wrong.start(1)] + b"utf-8" + body[wrong.end(1) :], url, "")
    if not _is_feed(parsed):
        raise FeedInvalid("it is no RSS or Atom feed")
    page = _page_of(str(parsed.feed.get("link") or ""), url)
    return [item for entry in parsed.get("entries", [])[:MAX_LISTED] if (item := _entry(entry, url, page)) is not None]


def _parsed(body: bytes, url: str, content_type: str) -> Any:
    import feedparser  # Imported late: many commands import this module, and feedparser takes long to load.
    from feedparser.encodings import convert_to_utf8

    headers = {"content-type": content_type, "content-location": url}
    try:
        text = convert_to_utf8(headers, body, {})
        if _DECLARATION.search(text) and _ENTITY.search(text):
            raise FeedInvalid("it declares XML entities of its own: refused")
        return feedparser.parse(io.BytesIO(body), response_headers=headers, sanitize_html=False)
    except (ValueError, LookupError, AssertionError, RecursionError, TypeError, AttributeError, OverflowError) as error:
        # feedparser 6 raises these on damaged input.
        raise FeedInvalid(f"it cannot be read: {type(error).__name__}") from error


def _joined(base: str, url: str) -> str:
    """Return the absolute address of a link; '' for an invalid one such as `https://[draft]/x`."""
    try:
        return urljoin(base, url)
    except ValueError:
        return ""


def _page_of(link: str, url: str) -> str:
    """Return the address of a feed's own page, by its link; else of the feed."""
    site = _joined(url, link)
    return page_address(site if site.startswith(("http://", "https://")) else url)


def _is_feed(parsed: Any) -> bool:
    return bool(parsed.get("version") or parsed.get("entries"))


def _entry(entry: Any, base: str, page: str) -> SourceItem | None:
    """Return the item of an entry; None if it has no web address or no text. `page`: the feed's own page."""
    identity = str(entry.get("id") or "")
    link = str(entry.get("link") or "")
    if link == identity and not link.startswith(("http://", "https://")):
        link = ""  # feedparser takes an id for the address, since a guid may be one.
    summary = str(entry.get("summary") or "")
    if not summary and entry.get("content"):
        summary = str(entry["content"][0].get("value") or "")
    title = text_of_html(str(entry.get("title") or ""))
    # Not by the entry's own `get`, which takes one of these for the other and warns of it.
    at = dict.get(entry, "published_parsed") or dict.get(entry, "updated_parsed")
    day = "{:04}-{:02}-{:02}".format(*at) if at else ""
    return _listed(_joined(base, link) if link else "", title, summary, identity, page, day)


def _listed(url: str, title: str, summary: str, identity: str, page: str, day: str) -> SourceItem | None:
    words = text_of_html(summary[:MAX_SUMMARY_CHARACTERS])
    anchor = ""
    if not url and identity.startswith(("http://", "https://")):
        url = identity
    elif not url and (title or words):
        # It is on the feed's page, identified there by its id, or its title.
        url, anchor = page, (identity or title or words)[:500]
    if not url.startswith(("http://", "https://")):
        return None
    # Entries without an id that share an address are distinguished by their titles.
    identity = identity or f"{title} {url}"
    return source_item(url, title or words[:80] or url, words, anchor=anchor, identity=identity, day=day)
