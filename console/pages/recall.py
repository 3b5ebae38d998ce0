"""Recall receipts, by session or newest first: which entries were given, and why. They are kept for 30 days on this
device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...index.catalog_reader import CatalogReader
from ...index.recall import DEGRADED_MESSAGES
from ...index.receipts import (
    WHY_NOT_SHOWN,
    count_given_before,
    describe_given_before,
    describe_nothing_shown,
    describe_told,
    read_receipts,
)
from ...runtime.errors import IndexUnavailable
from ...runtime.layout import StatePaths
from ...runtime.settings import Settings
from ...services.paging import page_of
from ...vault.automemory import COST_KIND
from ..context import ConsoleContext, Notice, Page, page_number

SESSIONS_ON_A_PAGE = 30
RECALLS_ON_A_PAGE = 10
NO_SESSION = "none"
"""Stands for the session of recalls by commands, tools and the console, which have none."""


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        session = request.query_params.get("session", "")
        return _one(context, request, session) if session else _all(context, request)

    return (Route("/recall", look, methods=["GET"]),)


def session_names(settings: Settings, sessions: Iterable[str]) -> dict[str, str]:
    """Return a name for each session by id: the title of the first entry learned; one without any is left out."""
    names: dict[str, str] = {}
    with suppress(IndexUnavailable), closing(CatalogReader(Path(settings.state.index_db))) as reader, reader.snapshot():
        for session in sessions:
            if entries := [each for each in reader.entries_of_session(session) if each.kind != COST_KIND]:
                names[session] = entries[-1].title
    return names


def _all(context: ConsoleContext, request: Request) -> Response:
    search = request.query_params.get("q", "").strip()[:200]
    listed = page_of(recalls_by_session(context.settings.state, search), page_number(request), SESSIONS_ON_A_PAGE)
    return context.page(
        request,
        "recall.html",
        page="recall",
        listed=listed,
        names=session_names(context.settings, [row.session for row in listed.rows]),
        search=search,
        no_session=NO_SESSION,
    )


def _one(context: ConsoleContext, request: Request, session: str) -> Response:
    wanted = None if session == NO_SESSION else session
    rows = [one for one in receipts_of(context.settings.state) if (one["session"] or None) == wanted]
    listed = page_of(rows, page_number(request), RECALLS_ON_A_PAGE)
    given_before = [count_given_before(one) for one in listed.rows]
    return context.page(
        request,
        "recall_session.html",
        page="recall",
        title="Recall",
        said=None if rows else Notice(f"no recall of a session {session[:80]} is on record", True),
        listed=listed,
        given_before=given_before,
        describe_given_before=describe_given_before,
        describe_nothing_shown=describe_nothing_shown,
        describe_told=describe_told,
        session=session,
        no_session=NO_SESSION,
        reasons=WHY_NOT_SHOWN,
        in_words=DEGRADED_MESSAGES,
    )


@dataclass
class Recalls:
    """The recalls of one session. `last` is ISO, UTC."""

    session: str
    last: str = ""
    count: int = 0
    injected: int = 0
    callers: dict[str, int] = field(default_factory=dict)
    project: str = ""
    slow_ms: float = 0.0
    degraded: int = 0
    given: str = ""
    """Path of the entry that was given most recently."""


def receipts_of(state: StatePaths) -> Iterator[dict[str, Any]]:
    """All receipts, newest first, without invalid lines."""
    current = Path(state.receipts)
    for file in (current, *sorted(current.parent.glob(current.name + ".*"), reverse=True)):
        for row in reversed(read_receipts(file)):
            if isinstance(row.get("at"), str):
                yield _shaped(row)


def recalls_by_session(state: StatePaths, search: str = "") -> list[Recalls]:
    """One row for each session, newest first; `search`: part of the id, the project or a path."""
    found: dict[str, Recalls] = {}
    sought = search.lower()
    for row in receipts_of(state):
        if sought and not _has(row, sought):
            continue
        session = row["session"] or NO_SESSION
        recalls = found.get(session)
        if recalls is None:
            recalls = found[session] = Recalls(session, last=row["at"])
        caller = row["caller"] or "–"
        recalls.count += 1
        recalls.injected += len(row["injected"])
        recalls.given = recalls.given or next(iter(row["injected"]), "")
        recalls.callers[caller] = recalls.callers.get(caller, 0) + 1
        recalls.project = recalls.project or row["project"]
        recalls.slow_ms = max(recalls.slow_ms, row["ms"].get("total") or 0.0)
        recalls.degraded += bool(row["degraded"])
    return list(found.values())


_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(("session", "project", "caller", "query", "channel", "guard"), ""),
    **dict.fromkeys(("characters", "tokens", "floor", "given_before")),
    **dict.fromkeys(("hits", "refused", "injected", "degraded"), ()),
    "ms": {},
}
_NO_SCORES: Mapping[str, Any] = {"why": "", **dict.fromkeys(("score", "dense", "keyword", "answers", "ordinal"))}


def _shaped(row: Mapping[str, Any]) -> dict[str, Any]:
    """The receipt with every field; that of a tool call has fewer."""
    shaped = {**_NOTHING, **{name: value for name, value in row.items() if value is not None}}
    scored = {of: [{**_NO_SCORES, **hit} for hit in shaped[of]] for of in ("hits", "refused")}
    return {**shaped, **scored}


def _has(row: Mapping[str, Any], sought: str) -> bool:
    told = (*(row[name] for name in ("session", "project", "query")), *(hit["path"] for hit in row["hits"]))
    return any(sought in text.lower() for text in told)


PAGE = Page(
    name="recall",
    title="Recall",
    key="c",
    routes=_routes,
    keys=(("/", "search"), ("]", "the next page"), ("[", "the page before")),
)
