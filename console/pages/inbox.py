"""The inbox: approve or reject what was inferred once, the likeliest first. The worker puts the rest in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...pipelines.likeness import statement_of
from ...services.paging import likeliest_first, load_pending_page, order_pending
from ...services.pending_counts import counts_of, list_pending_notes
from ...services.triaging import INBOX_ENTRIES
from ..context import ConsoleContext, Notice, Page, attempt, page_number, routes_of, undone
from .review import decided

ON_A_PAGE = 25


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def decide(request: Request) -> Response:
        return _shown(context, request, attempt(lambda: decided(context, request.state.form)))

    def undo(request: Request) -> Response:
        return _shown(context, request, undone(context, request.state.form.get("act", ""))[0])

    return routes_of("/inbox", partial(_shown, context), decide=decide, undo=undo)


def _shown(context: ConsoleContext, request: Request, said: Notice | None = None) -> Response:
    reviewer = context.reviewer()
    search = request.query_params.get("q", "")[:200]
    places = list_pending_notes(reviewer.store)
    number = page_number(request)
    ordered = order_pending(reviewer.store, places["inbox"], search)
    likely = [entry.path for entry in likeliest_first(reviewer.store.readable(ordered[:INBOX_ENTRIES]))]
    queue = load_pending_page(reviewer.store, [*likely, *ordered[INBOX_ENTRIES:]], number, ON_A_PAGE)
    return context.page(
        request,
        "inbox.html",
        page="inbox",
        said=said,
        address=context.url("inbox", q=search, page=number if number > 1 else ""),
        search=search,
        rows=[(entry, statement_of(entry.body)) for entry in queue.rows],
        queue=queue,
        last=reviewer.last_decision(),
        pending=counts_of(places),
        unread=reviewer.store.passed_over,
    )


PAGE = Page(
    name="inbox",
    title="Inbox",
    key="i",
    routes=_routes,
    waiting=lambda pending: pending.inbox,
    keys=(("/", "search"), ("]", "the next page"), ("[", "the page before"), ("u", "undo the last decision")),
)
