"""The inbox: what was inferred once, by group (notes that say the same) or note by note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...pipelines.likeness import statement_of
from ...pipelines.review import Approve, Decision, Reject
from ...pipelines.triage import Expire, Merge, Promote, TriageStep
from ...runtime.errors import EditConflict, EntryNotFound, UsageError
from ...runtime.layout import INBOX
from ...services.paging import Listed, page_of
from ...services.pending_counts import count_pending_notes
from ...services.pending_page import likeliest_first, list_pending_paths, load_pending_page, order_pending
from ...services.reviewing import Reviewer
from ...services.triaging import INBOX_ENTRIES, carry_out_step, plan_triage
from ...vault.entry import Entry
from ..context import ConsoleContext, Notice, Page, attempt, counted, decided_elsewhere, page_number, routes_of, undone

ON_A_PAGE = 25
GROUPS_ON_A_PAGE = 8
MOST_COMPARED = 250
"""Notes that are compared with each other, the oldest first; the rest follows once these are decided on."""

Name = Literal["promote", "merge", "expire"]


@dataclass(frozen=True)
class _Group:
    """A step of the triage with its notes; the note that is kept comes first."""

    name: Name
    why: str
    entries: tuple[Entry, ...]


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        return _shown(context, request)

    def sort(request: Request) -> Response:
        return _shown(context, request, attempt(lambda: _sorted(context, request.state.form)))

    def decide(request: Request) -> Response:
        return _shown(context, request, attempt(lambda: _decided(context, request.state.form)))

    def undo(request: Request) -> Response:
        return _shown(context, request, undone(context, request.state.form.get("act", ""))[0])

    return routes_of("/inbox", look, sort=sort, decide=decide, undo=undo)


def _sorted(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    """Carry out the step of one group as it was shown."""
    numbers = range(sum(name.startswith("path-") for name in form))
    seen = {form.get(f"path-{number}", ""): form.get(f"hash-{number}", "") for number in numbers}
    answer = form.get("answer")
    if not seen or answer not in ("yes", "reject"):
        raise UsageError("a group is put in order or rejected")
    reviewer = context.reviewer()
    try:
        done = carry_out_step(
            context.settings,
            reviewer,
            _step(form.get("step", ""), list(seen)),
            seen,
            "yes" if answer == "yes" else "reject",
        )
    except (EntryNotFound, EditConflict) as error:
        gone = next((path for path in seen if not reviewer.store.exists(path)), "")
        if not gone:
            raise
        raise decided_elsewhere(reviewer, gone, error) from error
    context.changed()
    what = done.result if done.path is None else f"{done.result}: {done.path}"
    return Notice(what + (f" ({counted(len(seen), 'note')})" if len(seen) > 1 else ""))


def _step(name: str, paths: list[str]) -> TriageStep:
    match name:
        case "promote":
            return Promote(tuple(paths), 0)
        case "merge" if len(paths) > 1:
            return Merge(tuple(paths))
        case "expire" if len(paths) == 1:
            return Expire(paths[0], "")
    raise UsageError("a group is promoted, merged or expired")


def _decided(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    """Decide on one note alone."""
    decisions: Mapping[str, Decision] = {"approve": Approve(), "reject": Reject()}
    decision = decisions.get(form.get("decision", ""))
    if decision is None:
        raise UsageError("a decision is approve or reject")
    path = form.get("item", "")
    reviewer = context.reviewer()
    try:
        decided = reviewer.decide(
            path, decision, run=reviewer.journal.new_run("review"), expected_hash=form.get("hash", "")
        )
    except (EntryNotFound, EditConflict) as error:
        raise decided_elsewhere(reviewer, path, error) from error
    context.changed()
    return Notice(decided.told)


def _shown(context: ConsoleContext, request: Request, said: Notice | None = None) -> Response:
    reviewer = context.reviewer()
    search = request.query_params.get("q", "")[:200]
    view = "all" if search or request.query_params.get("view") == "all" else "groups"
    every = list_pending_paths(reviewer.store)
    paths = every[INBOX]
    number = page_number(request)
    ordered = order_pending(reviewer.store, paths, search)
    groups: Sequence[_Group] = []
    if view == "groups":
        groups = _groups(context, reviewer, ordered)
    if view == "groups" and paths and not groups and request.query_params.get("view") != "groups":
        view = "all"  # There is no step: show every note.
    entries: Sequence[Entry] = ()
    if view == "groups":
        queue: Listed[Any] = page_of(groups, number, GROUPS_ON_A_PAGE)
        groups = queue.rows
    else:
        likely = [entry.path for entry in likeliest_first(reviewer.store.readable(ordered[:INBOX_ENTRIES]))]
        queue = load_pending_page(reviewer.store, [*likely, *ordered[INBOX_ENTRIES:]], number, ON_A_PAGE)
        entries = queue.rows
    return context.page(
        request,
        "inbox.html",
        page="inbox",
        said=said,
        address=context.url("inbox", view=view if view == "all" else "", q=search, page=number if number > 1 else ""),
        view=view,
        search=search,
        groups=groups,
        rows=[(entry, statement_of(entry.body)) for entry in entries],
        statement=lambda entry: statement_of(entry.body),
        queue=queue,
        total=len(paths),
        compared=min(len(ordered), MOST_COMPARED),
        mode=context.settings.memory.review_mode,
        last=reviewer.last_decision(),
        pending=count_pending_notes(reviewer.store, chain.from_iterable(every.values())),
        unread=reviewer.store.passed_over,
    )


def _groups(context: ConsoleContext, reviewer: Reviewer, ordered: Sequence[str]) -> list[_Group]:
    notes = list(reviewer.store.readable(ordered[:MOST_COMPARED]))
    steps, entries = plan_triage(context.settings, reviewer, notes)
    found = []
    for step in steps:
        match step:
            case Promote():
                why = f"seen {step.occurrences} times"
            case Merge():
                why = "these say the same"
            case Expire():
                why = step.why
        found.append(_Group(step.name, why, tuple(entries[path] for path in step.paths)))
    return found


PAGE = Page(
    name="inbox",
    title="Inbox",
    key="i",
    routes=_routes,
    waiting=lambda pending: pending.inbox,
    keys=(
        ("y", "put the first group in order as proposed"),
        ("x", "reject all of the first group"),
        ("u", "undo the last decision"),
        ("v", "groups, or every note"),
    ),
)
