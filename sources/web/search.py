"""Search engines without a key: make their addresses, read their answers."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from ...runtime.json_text import parse_json
from .decoding import whole_characters
from .fetch import Page

MOST_RESULTS = 5
_TAG = re.compile(r"<[^>]{0,500}>")
MAX_FIELD_CHARS = 500


class SearchResult(NamedTuple):
    """One result; all of it is foreign text."""

    title: str
    url: str
    excerpt: str


@dataclass(frozen=True)
class Provider:
    """A search engine, and the format of its answers."""

    name: str
    base: str
    search: str
    """What follows the base in the address of a search, with `{}` for the query."""
    rows: str
    """Names of the objects that hold the list of results, joined by dots."""
    fields: tuple[str, str, str]
    """Those of a result with its title, its address and an excerpt."""
    page: str = ""
    """Address of a result that has none, up to the text of the field `page_field`; relative to the base."""
    page_field: str = ""

    def url_of(self, query: str) -> str:
        """Return the address of a search."""
        return self.base + self.search.format(quote_plus(query))

    def results_of(self, page: Page) -> list[SearchResult]:
        """Return the results on a page. Raises AnswerUnreadable."""
        try:
            value = parse_json(page.body)
        except ValueError as error:
            raise AnswerUnreadable("the answer is no JSON") from error
        for name in self.rows.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if not isinstance(value, list):
            raise AnswerUnreadable(f"the answer has no list {self.rows!r}")
        return [self._result(row) for row in value if isinstance(row, dict)][:MOST_RESULTS]

    def _result(self, row: Mapping[str, Any]) -> SearchResult:
        title, url, excerpt = (row.get(name) for name in self.fields)
        if not url and self.page:
            start = self.page if self.page.startswith("https:") else self.base + self.page
            url = start + quote(_text(row.get(self.page_field)).replace(" ", "_"))
        address = whole_characters(url.strip()) if isinstance(url, str) else ""
        if not address.startswith(("https://", "http://")) or re.search(r"[\s<>]", address):
            address = ""
        return SearchResult(_text(title) or address or "(no title)", address.replace("`", "%60")[:500], _text(excerpt))


class AnswerUnreadable(Exception):
    """The answer is not in the engine's documented format."""


_PROVIDERS = (
    Provider(
        "wikipedia",
        "https://en.wikipedia.org",
        f"/w/api.php?action=query&list=search&srsearch={{}}&srlimit={MOST_RESULTS}&format=json",
        "query.search",
        ("title", "url", "snippet"),
        page="/wiki/",
        page_field="title",
    ),
    Provider(
        "github",
        "https://api.github.com",
        f"/search/repositories?q={{}}&per_page={MOST_RESULTS}",
        "items",
        ("full_name", "html_url", "description"),
    ),
    Provider(
        "hackernews",
        "https://hn.algolia.com",
        f"/api/v1/search?query={{}}&tags=story&hitsPerPage={MOST_RESULTS}",
        "hits",
        ("title", "url", "story_text"),
        page="https://news.ycombinator.com/item?id=",
        page_field="objectID",
    ),
    Provider("searxng", "", "/search?q={}&format=json", "results", ("title", "url", "content")),
)


def providers(bases: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers by name. `bases` replaces base addresses, and adds `searxng`, which has no default."""
    known = (replace(each, base=bases.get(each.name, each.base).rstrip("/")) for each in _PROVIDERS)
    return {each.name: each for each in known if each.base}


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    return whole_characters(" ".join(html.unescape(_TAG.sub("", value)).split())[:MAX_FIELD_CHARS])
