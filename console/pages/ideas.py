"""The incubator: keep, archive or delete ideas, the stale ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...pipelines.incubation import TRASH_DAYS, Answer, listed
from ...runtime.errors import EntryInvalid, EntryNotFound, UsageError
from ...runtime.layout import INCUBATOR
from ...services.ideas.archive import put_away_ideas
from ...services.ideas.incubator import decide_on_idea
from ...services.ideas.ledger import is_surfaced, pitch_of, said_on, slug_of
from ...services.paging import open_pending, order_pending
from ...services.pending_counts import counts_of, list_pending_notes
from ...vault.entry import Entry
from ...vault.pending import IDEAS_LIST, is_idea_path
from ...vault.store import VaultStore
from ..context import ConsoleContext, Notice, Page, attempt, page_number, routes_of, undone

ON_A_PAGE = 20
ANSWERS: Mapping[str, Answer] = {answer.value: answer for answer in Answer}


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        return _shown(context, request, request.query_params.get("idea", ""))

    def decide(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        said = attempt(lambda: _decided(context, form))
        return _shown(context, request, form.get("idea" if said.is_problem else "next", ""), said)

    def undo(request: Request) -> Response:
        said, act = undone(context, request.state.form.get("act", ""))
        back = [slug_of(change.path) for change in act.changes if is_idea_path(change.path)] if act else []
        back += [move.to.rsplit("/", 1)[-1] for move in act.moves] if act else []
        return _shown(context, request, back[0] if back else request.state.form.get("item", ""), said)

    return routes_of("/ideas", look, decide=decide, undo=undo)


def _decided(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    slug = form.get("idea", "")
    answer = ANSWERS.get(form.get("answer", ""))
    if answer is None:
        raise UsageError("an idea is kept, archived or deleted")
    reviewer = context.reviewer()
    run = reviewer.journal.new_run("review")
    seen = form.get("hash", "")
    done = decide_on_idea(context.settings, reviewer.journal, slug, answer, run=run, expected_hash=seen)
    context.changed()
    again = f"; it can be restored for {TRASH_DAYS} days" if answer is Answer.DELETE else ""
    return Notice(f"{done.verdict}: {slug}{again}")


def _path(slug: str) -> str:
    return f"personal-private/{INCUBATOR}/{slug}/_index.md"


def _shown(context: ConsoleContext, request: Request, wanted: str, said: Notice | None = None) -> Response:
    reviewer = context.reviewer()
    store = reviewer.store
    search = request.query_params.get("q", "")[:200]
    places = list_pending_notes(store)
    stale = _nobody_came_back(store)
    ordered = order_pending(store, places["ideas"], search)
    ordered.sort(key=lambda path: slug_of(path) not in stale)
    if wanted and _path(wanted) not in ordered and said is None:
        said = Notice(f"{wanted[:80]} is not in the incubator any more", is_problem=True)
    shown = open_pending(store, ordered, _path(wanted), page_number(request), ON_A_PAGE)
    queue, chosen = shown.page, shown.entry
    return context.page(
        request,
        "ideas.html",
        page="ideas",
        said=said,
        address=context.url("ideas", idea=slug_of(chosen.path) if chosen else "", q=search),
        queue=queue,
        start=(queue.number - 1) * ON_A_PAGE + 1,
        rows=[(slug_of(idea.path), idea, pitch_of(idea)) for idea in queue.rows],
        idea=chosen,
        said_on=said_on,
        slug=slug_of(chosen.path) if chosen else "",
        before=slug_of(shown.before) if shown.before else "",
        after=slug_of(shown.after) if shown.after else "",
        place=shown.place,
        stale=stale,
        to_answer=sum(slug_of(path) in stale for path in ordered),
        months=context.settings.memory.incubator_gc_months,
        surfaced=is_surfaced(context.settings, store, chosen.path) if chosen else None,
        files=_beside(store, chosen),
        away=len(put_away_ideas(store)),
        search=search,
        last=reviewer.last_decision(),
        pending=counts_of(places),
        unread=store.passed_over,
    )


def _nobody_came_back(store: VaultStore) -> frozenset[str]:
    """Slugs of the weekly list of stale ideas."""
    try:
        return frozenset(listed(store.read(IDEAS_LIST).body))
    except (EntryNotFound, EntryInvalid):
        return frozenset()


def _beside(store: VaultStore, idea: Entry | None) -> list[tuple[str, str]]:
    """Path and title of each note that research wrote beside the idea."""
    if idea is None:
        return []
    folder = idea.path.rpartition("/")[0]
    paths = sorted(
        path for path in store.walk_special({INCUBATOR}) if path.startswith(f"{folder}/") and path != idea.path
    )
    return [(entry.path, entry.title) for entry in store.readable(paths)]


PAGE = Page(
    name="ideas",
    title="Ideas",
    key="d",
    routes=_routes,
    waiting=lambda pending: pending.ideas,
    keys=(
        ("k", "keep"),
        ("a", "archive"),
        ("d", "delete"),
        ("s", "skip: the next one; also j"),
        ("b", "the one before"),
        ("u", "undo the last decision"),
    ),
)
