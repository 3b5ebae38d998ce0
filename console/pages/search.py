"""Search: the recall of commands and hooks, or without words all entries that match the filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...index.catalog_reader import CatalogReader
from ...index.filters import named_values, parse_filter, require_known
from ...index.recall import DEGRADED_MESSAGES, recall_entries
from ...index.scope import Scope
from ...runtime.days import local_today
from ...runtime.errors import IndexUnavailable, UsageError
from ...runtime.layout import INBOX, INCUBATOR, REVIEW
from ...services.paging import Listed, nearest_page, page_of
from ...vault.entry import AWAITING_STATUSES, STATUSES
from ..context import ConsoleContext, Notice, Page, page_number

ON_A_PAGE = 20
MOST_HITS = 100
"""Most hits of a recall."""
PATIENCE_SECONDS = 3.0
"""How long a new recall service may load its model before keywords answer."""
WAITING = (INBOX, INCUBATOR, REVIEW)
LONGEST = 500
FILTERS = ("kind", "project", "status", "tag", "since", "filter")
"""Fields of the form except the words."""
EXCERPT = 320


@dataclass(frozen=True)
class SearchForm:
    """The fields of the form."""

    text: str
    kind: str
    project: str
    status: str
    tag: str
    since: str
    filter: str
    is_weak: bool
    """Whether to show hits below the floor, too."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> SearchForm:
        def field(name: str) -> str:
            return values.get(name, "").strip()[:LONGEST]

        return cls(text=field("q"), is_weak=bool(values.get("weak")), **{name: field(name) for name in FILTERS})

    @property
    def query(self) -> dict[str, str]:
        """The fields as parameters of an address."""
        filters = {name: getattr(self, name) for name in FILTERS}
        return {"q": self.text, **filters, "weak": "1" if self.is_weak else ""}

    @property
    def since_day(self) -> str:
        """`since` as a date field takes it; '' when it is an age (`30d`) or no day at all."""
        try:
            return date.fromisoformat(self.since).isoformat()
        except ValueError:
            return ""

    @property
    def has_filter(self) -> bool:
        return any(getattr(self, name) for name in FILTERS)

    @property
    def expression(self) -> str | None:
        """All filters as one expression, as `memory recall --filter` takes it."""
        parts = [f"{key}={quoted(value)}" for key, value in (
            ("kind", self.kind), ("project", self.project), ("tag", self.tag)) if value]  # fmt: skip
        if self.status and self.status != "any":
            parts.append(f"status={quoted(self.status)}")
        if self.status == "any":
            parts.append("(" + " OR ".join(f"status={status}" for status in STATUSES) + ")")
        if self.since:
            parts.append(f"updated since {quoted(self.since)}")
        if self.filter:
            parts.append(f"({self.filter})")
        return " AND ".join(parts) or None

    @property
    def include(self) -> tuple[str, ...]:
        """Folders of waiting notes, if they are requested."""
        return WAITING if self.status == "any" or self.status in AWAITING_STATUSES else ()


@dataclass(frozen=True)
class Results(Listed[Mapping[str, Any]]):
    """One page of hits: mappings with path, title, kind, …, and scores if a recall found them."""

    remarks: tuple[str, ...] = ()
    answering: int = 0
    """How many of all hits, on every page, are not weak."""


def quoted(value: str) -> str:
    """The value quoted for a filter expression."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        asked = SearchForm.of(request.query_params)
        said = None
        results = Results((), 0, 1, 1)
        try:
            results = _results(context, asked, page_number(request))
        except UsageError as error:
            said = Notice(str(error), is_problem=True)
        kinds, projects = _choices(context)
        return context.page(
            request,
            "search.html",
            page="search",
            said=said,
            asked=asked,
            results=results,
            start=(results.number - 1) * ON_A_PAGE + 1,
            kinds=kinds,
            projects=projects,
            statuses=STATUSES,
            longest=EXCERPT,
            most=MOST_HITS,
            quoted=quoted,
        )

    return (Route("/search", look, methods=["GET"]),)


def _results(context: ConsoleContext, asked: SearchForm, number: int) -> Results:
    # Raises for a wrong filter before anything is searched.
    tree = parse_filter(asked.expression, local_today())
    require_known(named_values(tree, "status"), context.store())
    if asked.text:
        return _recalled(context, asked, number)
    scope = Scope(all_projects=True, include=frozenset(asked.include), filter=tree)
    try:
        with closing(CatalogReader(Path(context.settings.state.index_db))) as reader, reader.snapshot():
            in_place = not asked.has_filter  # to agree with the count of entries in use elsewhere
            total = reader.count_entries(scope, in_place=in_place)
            number, pages = nearest_page(total, number, ON_A_PAGE)
            rows = reader.list_entries(scope, (number - 1) * ON_A_PAGE, ON_A_PAGE, in_place=in_place)
            texts = reader.first_chunks([row.rowid for row in rows])
    except IndexUnavailable as error:
        return Results((), 0, 1, 1, (f"nothing can be listed: {error}",))
    hits = tuple({**row.__dict__, "excerpt": texts.get(row.rowid, (0, ""))[1], "score": None} for row in rows)
    return Results(hits, total, number, pages)


def _recalled(context: ConsoleContext, asked: SearchForm, number: int) -> Results:
    request: dict[str, Any] = {
        "k": MOST_HITS,
        "filter": asked.expression,
        "all_projects": True,
        "include": sorted(asked.include),
        "floor": not asked.is_weak,
    }
    settings = context.settings
    answer = recall_entries(
        settings, settings.state, asked.text, request, caller="console", patience_seconds=PATIENCE_SECONDS
    )
    remarks = [f"answered {DEGRADED_MESSAGES.get(code, code)}" for code in answer.degraded]
    hits = [hit for hit in answer.hits if asked.is_weak or not hit.get("is_weak")]
    answering = sum(not hit.get("is_weak") for hit in hits)
    return Results(**vars(page_of(hits, number, ON_A_PAGE)), remarks=tuple(remarks), answering=answering)


def _choices(context: ConsoleContext) -> tuple[list[str], list[str]]:
    """The kinds and projects of all entries."""
    index = Path(context.settings.state.index_db)
    with suppress(IndexUnavailable), closing(CatalogReader(index)) as reader, reader.snapshot():
        return reader.distinct_values("kind"), reader.distinct_values("project")
    return [], []


PAGE = Page(
    name="search",
    title="Search",
    key="s",
    routes=_routes,
    keys=(("/", "the words to search for"), ("]", "the next page"), ("[", "the page before")),
)
