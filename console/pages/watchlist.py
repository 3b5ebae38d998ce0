"""The watchlist: promote, dismiss or defer patterns to adopt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...pipelines.scrub import Policy, scrub
from ...pipelines.watchlist import DEFER_DAYS, FOLDER, Decision, Defer, Dismiss, Promote, is_archived, parts_of
from ...runtime.errors import EditConflict, EntryNotFound, PathRefused, UsageError
from ...services.discovery.watchlist import Watchlist, is_deferred, is_waiting, surest_first
from ...services.paging import page_of
from ...vault.entry import Entry
from ..context import ConsoleContext, Notice, Page, attempt, decided_elsewhere, page_number, routes_of, undone

ON_A_PAGE = 20
MAX_REASON_CHARACTERS = 500


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        return _shown(context, request, request.query_params.get("item", ""))

    def decide(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        said = attempt(lambda: _decided(context, form))
        if said.is_problem:
            return _shown(context, request, form.get("item", ""), said, typed=form)
        return _shown(context, request, form.get("next", ""), said)

    def undo(request: Request) -> Response:
        said, act = undone(context, request.state.form.get("act", ""))
        back = [change.path for change in act.changes if change.path.startswith(f"{FOLDER}/")] if act else []
        here = next((path for path in back if not is_archived(path)), request.state.form.get("item", ""))
        return _shown(context, request, here, said)

    return routes_of("/watchlist", look, decide=decide, undo=undo)


def _decided(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    path = form.get("item", "")
    watchlist = Watchlist(context.settings)
    reason = " ".join(form.get("reason", "")[:MAX_REASON_CHARACTERS].split())
    try:
        decided = watchlist.decide(
            path,
            _decision(form, watchlist.store.today()),
            reason=scrub(reason, Policy.SECRETS).on_one_line() if reason else None,
            run=watchlist.journal.new_run("watchlist"),
            expected_hash=form.get("hash", ""),
        )
    except (EntryNotFound, EditConflict) as error:
        raise decided_elsewhere(context.reviewer(), path, error) from error
    context.changed()
    until = f" until {form['until']}" if decided.verdict == "deferred" and form.get("until") else ""
    return Notice(f"{decided.verdict}{until}: {decided.now}")


def _decision(form: Mapping[str, str], today: date) -> Decision:
    match form.get("decision"):
        case "promote":
            return Promote()
        case "dismiss":
            return Dismiss()
        case "defer":
            until = form.get("until", "")
            try:
                return Defer(date.fromisoformat(until) if until else today + timedelta(days=DEFER_DAYS))
            except ValueError as error:
                raise UsageError(f"{until[:20]!r} is not a day: write YYYY-MM-DD") from error
    raise UsageError("nothing was decided: press Promote, Defer or Dismiss")


def _shown(
    context: ConsoleContext,
    request: Request,
    wanted: str,
    said: Notice | None = None,
    typed: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """The list with the pattern `wanted` open; `typed`: the form of a decision that failed."""
    watchlist = Watchlist(context.settings)
    today = watchlist.store.today()
    asked = request.query_params
    view, search = ("all" if asked.get("view") == "all" else ""), asked.get("q", "")[:200]
    every = watchlist.all()
    waiting = surest_first(note for note in every if is_waiting(note))
    now = [note for note in waiting if not is_deferred(note, today)]
    shown = every if view == "all" else now
    words = search.casefold().split()
    shown = [note for note in shown if all(word in f"{note.title}\n{note.body}".casefold() for word in words)]
    place = next((at for at, note in enumerate(shown) if note.path == wanted), None)
    if place is None and wanted and said is None:
        said = Notice("that pattern does not wait here any more", is_problem=True)
    queue = page_of(shown, place // ON_A_PAGE + 1 if place is not None else page_number(request), ON_A_PAGE)
    start = (queue.number - 1) * ON_A_PAGE
    at = place if place is not None else start
    chosen = shown[at] if shown else None
    typed = typed if place is not None else {}
    return context.page(
        request,
        "watchlist.html",
        page="watchlist",
        said=said,
        address=context.url("watchlist", item=chosen.path if chosen else "", view=view, q=search),
        queue=queue,
        start=start + 1,
        rows=[(note, _name(note), _status(note, today)) for note in queue.rows],
        item=chosen,
        name=_name(chosen) if chosen else "",
        state=_status(chosen, today) if chosen else "",
        can_decide=chosen is not None and not is_archived(chosen.path),
        before=shown[at - 1].path if chosen and at else "",
        after=shown[at + 1].path if chosen and at + 1 < len(shown) else "",
        place=at + 1,
        deferred=len(waiting) - len(now),
        reason=typed.get("reason", ""),
        until=typed.get("until") or (today + timedelta(days=DEFER_DAYS)).isoformat(),
        view=view,
        search=search,
        last=context.reviewer().last_decision(),
        unread=watchlist.store.passed_over,
    )


def _name(note: Entry) -> str:
    try:
        return "/".join(parts_of(note.path))
    except PathRefused:
        return "/".join(note.path.removesuffix(".md").split("/")[-2:])


def _status(note: Entry, today: date) -> str:
    if is_archived(note.path):
        return "dismissed"
    if note.extra.get("promoted"):
        return "promoted"
    if is_waiting(note):
        return f"deferred until {note.extra.get('deferred_until')}" if is_deferred(note, today) else "waits"
    return note.effective_status


PAGE = Page(
    name="watchlist",
    title="Watchlist",
    key="w",
    routes=_routes,
    waiting=lambda pending: pending.patterns,
    keys=(
        ("p", "promote"),
        ("d", "dismiss, for good"),
        ("f", "defer"),
        ("s", "skip: the next one; also j"),
        ("b", "the one before"),
        ("u", "undo the last decision"),
    ),
)
