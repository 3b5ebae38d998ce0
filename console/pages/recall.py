"""Recall receipts, newest first: which entries were given, and why. They are kept for 30 days on this device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...index.recall import DEGRADED_MESSAGES
from ...index.receipts import (
    WHY_NOT_SHOWN,
    count_given_before,
    describe_given_before,
    describe_nothing_shown,
    describe_told,
    read_receipts,
)
from ...runtime.layout import StatePaths
from ...services.paging import page_of
from ..context import ConsoleContext, Page, page_number

ON_A_PAGE = 10


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        search = request.query_params.get("q", "").strip()[:200]
        rows = [one for one in receipts_of(context.settings.state) if _has(one, search.lower())]
        listed = page_of(rows, page_number(request), ON_A_PAGE)
        return context.page(
            request,
            "recall.html",
            page="recall",
            listed=listed,
            given_before=[count_given_before(one) for one in listed.rows],
            describe_given_before=describe_given_before,
            describe_nothing_shown=describe_nothing_shown,
            describe_told=describe_told,
            search=search,
            reasons=WHY_NOT_SHOWN,
            in_words=DEGRADED_MESSAGES,
        )

    return (Route("/recall", look, methods=["GET"]),)


def receipts_of(state: StatePaths) -> Iterator[dict[str, Any]]:
    """All receipts, newest first, without invalid lines."""
    current = Path(state.receipts)
    for file in (current, *sorted(current.parent.glob(current.name + ".*"), reverse=True)):
        for row in reversed(read_receipts(file)):
            if isinstance(row.get("at"), str):
                yield _shaped(row)


_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("session", "project", "caller", "query", "channel", "guard"), ""),
    **dict.fromkeys(("characters", "tokens", "floor", "given_before")),
    **dict.fromkeys(("hits", "refused", "injected", "degraded"), ()),
    "ms": {},
}
_NO_HIT: Mapping[str, Any] = {
    "path": "",
    "why": "",
    **dict.fromkeys(("score", "dense", "keyword", "answers", "ordinal")),
}


def _shaped(row: Mapping[str, Any]) -> dict[str, Any]:
    """The receipt with every field; that of a tool call has fewer."""
    shaped = {**_NOTHING, **{name: value for name, value in row.items() if value is not None}}
    scored = {of: [{**_NO_HIT, **hit} for hit in shaped[of]] for of in ("hits", "refused")}
    return {**shaped, **scored}


def _has(row: Mapping[str, Any], sought: str) -> bool:
    """Whether the session, the project or an entry's path has the text."""
    paths = (*(hit["path"] for hit in row["hits"]), *row["injected"])
    told = (*(row[name] for name in ("session", "project", "query")), *paths)
    return any(sought in text.lower() for text in told)


PAGE = Page(
    name="recall",
    title="Recall",
    key="c",
    routes=_routes,
    keys=(("/", "search"), ("]", "the next page"), ("[", "the page before")),
)
