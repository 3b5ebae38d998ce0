"""The list of sessions, and what was learned from one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...services.session_list import session_names, session_page, session_story
from ..context import ConsoleContext, Page, page_number

ON_A_PAGE = 30


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        asked = request.query_params
        session = asked.get("id", "")
        if session:
            return context.page(
                request,
                "session.html",
                page="sessions",
                story=session_story(context.settings, session),
                now=time.time(),
            )
        search, learned = asked.get("q", "").strip()[:200], bool(asked.get("learned"))
        listed = session_page(context.settings, page_number(request), ON_A_PAGE, search=search, only_learned=learned)
        return context.page(
            request,
            "sessions.html",
            page="sessions",
            listed=listed,
            names=session_names(context.settings, [row.id for row in listed.rows]),
            search=search,
            learned=learned,
            now=time.time(),
        )

    return (Route("/sessions", look, methods=["GET"]),)


PAGE = Page(
    name="sessions",
    title="Sessions",
    key="n",
    routes=_routes,
    keys=(("/", "search"), ("]", "the next page"), ("[", "the page before")),
)
