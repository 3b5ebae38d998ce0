"""Search engines without a key: make their addresses, read their answers."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from ...runtime.json_text import parse_json
from .decoding import whole_characters
from .fetch import Page

MOST_RESULTS = 5
_TAG = re.compile(r"<[^>]{0,500}>")
MAX_FIELD_CHARS = 500


@dataclass(frozen=True)
class SearchResult:
    """One result; all of it is foreign text."""

    title: str
    url: str
    excerpt: str


@dataclass(frozen=True)
class Provider:
    """A search engine at a base address."""

    name: str
    base: str
    url_of: Callable[[str, str], str]
    """Returns the address of a search: (base, query)."""
    results_of: Callable[[str, Page], list[SearchResult]]
    """Returns the results on a page: (base, page). Raises AnswerUnreadable."""


class AnswerUnreadable(Exception):
    """The answer is not in the engine's documented format."""


def providers(bases: Mapping[str, str] | None = None) -> dict[str, Provider]:
    """Return the providers by name. `bases` replaces base addresses, and adds `searxng`, which has no default."""
    bases = bases or {}
    known = {
        "wikipedia": ("https://en.wikipedia.org", _wikipedia_url, _wikipedia),
        "github": ("https://api.github.com", _github_url, _github),
        "hackernews": ("https://hn.algolia.com", _hackernews_url, _hackernews),
        "searxng": ("", _searxng_url, _searxng),
    }
    found = {}
    for name, (base, url_of, results_of) in known.items():
        address = bases.get(name, base).rstrip("/")
        if address:
            found[name] = Provider(name, address, url_of, results_of)
    return found


def _wikipedia_url(base: str, query: str) -> str:
    asked = {"action": "query", "list": "search", "srsearch": query, "srlimit": MOST_RESULTS, "format": "json"}
    return f"{base}/w/api.php?{urlencode(asked)}"


def _wikipedia(base: str, page: Page) -> list[SearchResult]:
    rows = _rows(_object(page).get("query"), "search")
    return [
        _result(row.get("title"), f"{base}/wiki/{quote(_text(row.get('title')).replace(' ', '_'))}", row.get("snippet"))
        for row in rows
    ]


def _github_url(base: str, query: str) -> str:
    return f"{base}/search/repositories?{urlencode({'q': query, 'per_page': MOST_RESULTS})}"


def _github(base: str, page: Page) -> list[SearchResult]:
    return [
        _result(row.get("full_name"), row.get("html_url"), row.get("description"))
        for row in _rows(_object(page), "items")
    ]


def _hackernews_url(base: str, query: str) -> str:
    return f"{base}/api/v1/search?{urlencode({'query': query, 'tags': 'story', 'hitsPerPage': MOST_RESULTS})}"


def _hackernews(base: str, page: Page) -> list[SearchResult]:
    return [
        _result(
            row.get("title"),
            row.get("url") or f"https://news.ycombinator.com/item?id={quote(_text(row.get('objectID')))}",
            row.get("story_text"),
        )
        for row in _rows(_object(page), "hits")
    ]


def _searxng_url(base: str, query: str) -> str:
    return f"{base}/search?{urlencode({'q': query, 'format': 'json'})}"


def _searxng(base: str, page: Page) -> list[SearchResult]:
    return [_result(row.get("title"), row.get("url"), row.get("content")) for row in _rows(_object(page), "results")]


def _object(page: Page) -> Mapping[str, Any]:
    try:
        value = parse_json(page.body)
    except ValueError as error:
        raise AnswerUnreadable("the answer is no JSON") from error
    if not isinstance(value, dict):
        raise AnswerUnreadable("the answer is no JSON object")
    return value


def _rows(value: object, name: str) -> Sequence[Mapping[str, Any]]:
    rows = value.get(name) if isinstance(value, dict) else None
    if not isinstance(rows, list):
        raise AnswerUnreadable(f"the answer has no list {name!r}")
    return [row for row in rows if isinstance(row, dict)][:MOST_RESULTS]


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return whole_characters(" ".join(html.unescape(_TAG.sub("", value)).split())[:MAX_FIELD_CHARS])


def _result(title: object, url: object, excerpt: object) -> SearchResult:
    address = whole_characters(url.strip()) if isinstance(url, str) else ""
    if not address.startswith(("https://", "http://")) or re.search(r"[\s<>]", address):
        address = ""
    return SearchResult(_text(title) or address or "(no title)", address.replace("`", "%60")[:500], _text(excerpt))
