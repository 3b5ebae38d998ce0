"""Recall receipts: which entries a session was given, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...index.recall import DEGRADED_MESSAGES
from ...index.receipts import (
    WHY_NOT_SHOWN,
    append_receipt,
    count_given_before,
    describe_given_before,
    describe_nothing_shown,
    describe_told,
    marks_of,
    new_mark,
    read_marks,
)
from ...runtime.errors import UsageError
from ...services.paging import page_of
from ...services.session_list import session_names
from ..context import ConsoleContext, Notice, Page, attempt, page_number, routes_of
from ..receipts import NO_SESSION, recalls_by_session, receipts_of, stages

SESSIONS_ON_A_PAGE = 30
RECALLS_ON_A_PAGE = 10


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        session = request.query_params.get("session", "")
        return _one(context, request, session) if session else _all(context, request)

    def mark(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        said = attempt(lambda: _marked(context, form))
        return _one(context, request, form.get("session", ""), said=said)

    return routes_of("/recall", look, mark=mark)


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


def _one(context: ConsoleContext, request: Request, session: str, said: Notice | None = None) -> Response:
    wanted = None if session == NO_SESSION else session
    rows = [one for one in receipts_of(context.settings.state) if (one["session"] or None) == wanted]
    listed = page_of(rows, page_number(request), RECALLS_ON_A_PAGE)
    given_before = [count_given_before(one) for one in listed.rows]
    marks = marks_of(read_marks(_marks_file(context)))
    return context.page(
        request,
        "recall_session.html",
        page="recall",
        title="Recall",
        said=said or (None if rows else Notice(f"no recall of a session {session[:80]} is on record", True)),
        address=context.url("recall", session=session, page=listed.number),
        listed=listed,
        given_before=given_before,
        describe_given_before=describe_given_before,
        describe_nothing_shown=describe_nothing_shown,
        describe_told=describe_told,
        session=session,
        no_session=NO_SESSION,
        marks=marks,
        reasons=WHY_NOT_SHOWN,
        in_words=DEGRADED_MESSAGES,
        stages=stages,
    )


def _marked(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    """Mark a recorded hit, as `memory vault inspect --useful` does."""
    at, path, useful = form.get("at", ""), form.get("path", ""), form.get("useful", "")
    if useful not in ("yes", "no"):
        raise UsageError("a hit is marked as useful or as noise")
    for one in receipts_of(context.settings.state):
        if one["at"] == at and any(hit["path"] == path for hit in one["hits"]):
            append_receipt(_marks_file(context), new_mark(one, path, useful=useful == "yes"))
            return Notice(f"{path} is marked as {'useful' if useful == 'yes' else 'noise'}")
    raise UsageError("no recall on record has that hit")


def _marks_file(context: ConsoleContext) -> Path:
    return Path(context.settings.state.log) / "marks.jsonl"


PAGE = Page(
    name="recall",
    title="Recall",
    key="c",
    routes=_routes,
    keys=(("/", "search"), ("]", "the next page"), ("[", "the page before")),
)
