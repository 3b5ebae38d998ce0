"""The review queue: one proposal at a time, one key each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...hooks.install import may_offer_actions, remember_asked
from ...pipelines.incubation import GC_KIND, KIND_IN_WORDS, SURFACE_KIND
from ...pipelines.likeness import statement_of
from ...pipelines.review import Decision, Supersede, link_target, parse_decision, why_none
from ...runtime.days import parse_local_day
from ...runtime.errors import EntryInvalid, EntryNotFound, MemoryVaultError, PathRefused, UsageError
from ...runtime.layout import REVIEW, special_folder
from ...services.action_index import compile_rule, may_guard
from ...services.entry_names import resolve_entry
from ...services.excerpts import excerpts_of
from ...services.paging import open_pending, order_pending
from ...services.pending_counts import counts_of, list_pending_notes
from ...services.replacing import replaced_now
from ...services.reviewing import DecisionOutcome, Reviewer
from ...vault.entry import ACTIVE, Entry, Source
from ...vault.note_text import without_replacement_line as kept_text
from ...vault.pending import describe_review
from ..context import ConsoleContext, Notice, Page, attempt, edited_text, name_of, page_number, routes_of, undone

ON_A_PAGE = 20
MOST_SESSIONS = 3
"""How many sessions are quoted; the entry's page has more."""
PANELS = frozenset({"edit", "supersede"})


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        asked = request.query_params
        return _shown(context, request, asked.get("item", ""), panel=asked.get("panel", ""))

    def decide(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        said = attempt(lambda: decided(context, form))
        # After a failure show the same proposal again, else the next one.
        again = said.is_problem and _exists(context, form.get("item", ""))
        if again:
            typed = form.get("body", "")
            panel = "edit" if typed else "supersede" if form.get("decision") == "supersede" else ""
            return _shown(
                context, request, form["item"], panel=panel, said=said, typed=typed, compared=form.get("old", "")
            )
        return _shown(
            context, request, form.get("next", ""), said=said, unsent=form.get("body", "") if said.is_problem else ""
        )

    def around(request: Request) -> Response:
        sources: tuple[Source, ...] = ()
        with suppress(EntryNotFound, EntryInvalid, PathRefused):  # Decided elsewhere meanwhile.
            sources = context.store().read(request.query_params.get("item", "")).sources
        said_in = [source for source in sources if source.session][:MOST_SESSIONS]
        return context.part("review_said.html", excerpts=excerpts_of(context.settings, said_in))

    def undo(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        said, act = undone(context, form.get("act", ""))
        back = [change.path for change in act.changes if special_folder(change.path) == REVIEW] if act else []
        return _shown(context, request, back[0] if back else form.get("item", ""), said=said)

    pages = routes_of("/review", look, decide=decide, undo=undo)
    return (*pages, Route("/review/said", around, methods=["GET"]))


def _exists(context: ConsoleContext, path: str) -> bool:
    try:
        return context.store().exists(path)
    except (MemoryVaultError, OSError):
        return False


def decided(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    """Carry out the decision of a form; return what it did. Raises as `Reviewer.decide`."""
    path = form.get("item", "")
    reviewer = context.reviewer()
    decision = _decision(form)
    body, remark = edited_text(form, "reject") if "body" in form else (None, "")
    done = reviewer.decide(
        path,
        decision,
        run=reviewer.journal.new_run("review"),
        body=body,
        expected_hash=form.get("hash", ""),
        # Missing if no other text was shown beside the proposal.
        expected_old=form.get("old_hash") or None,
    )
    context.changed()
    return Notice(f"{done.told}{remark}{_offer_actions_once(context, reviewer, done)}")


def _offer_actions_once(context: ConsoleContext, reviewer: Reviewer, decided: DecisionOutcome) -> str:
    """A hint, given once, to wire the hooks of tool calls if the rule names a command or file; else ''."""
    with suppress(MemoryVaultError):
        entry = reviewer.store.read(decided.path)
        if entry.effective_status == ACTIVE and compile_rule(entry)[1] and may_offer_actions(context.settings):
            remember_asked(context.settings)
            return "; it speaks of what the agent does: to have it told then, run `memory guard --on`"
    return ""


def _decision(form: Mapping[str, str]) -> Decision:
    word = form.get("decision", "")
    target = link_target(form.get("other", "")) or form.get("old", "")
    if word == "supersede" and not target:
        raise UsageError("which entry does it replace? choose one, or give its path or slug")
    decision = Supersede(target) if word == "supersede" else parse_decision(word)
    if decision is None:
        raise UsageError(why_none(word))
    return decision


def _shown(
    context: ConsoleContext,
    request: Request,
    wanted: str,
    *,
    panel: str = "",
    said: Notice | None = None,
    typed: str = "",
    compared: str = "",
    unsent: str = "",
) -> Response:
    """The queue with one item open: `wanted`, else the first of the page.

    `typed`: an edit that was not saved; `compared`: the entry beside it; `unsent`: an edit of a proposal that no longer
    waits.
    """
    reviewer = context.reviewer()
    search = request.query_params.get("q", "")[:200]
    places = list_pending_notes(reviewer.store)
    ordered = order_pending(reviewer.store, [*places["proposals"], *places["questions"]], search)
    questions = len({*ordered}.intersection(places["questions"]))
    if wanted not in ordered and wanted and said is None:
        said = Notice(f"{name_of(wanted)} does not wait any more", is_problem=True)
    shown = open_pending(reviewer.store, ordered, wanted, page_number(request), ON_A_PAGE)
    queue, entry = shown.page, shown.entry
    near: list[Entry] = []
    old: Entry | None = None
    if entry is not None and panel == "supersede" and entry.kind != SURFACE_KIND:
        near = reviewer.nearest(entry)
        asked = {"old": compared} if compared else request.query_params
        old, problem = _old(reviewer, asked, near)
        said = said or problem
    return context.page(
        request,
        "review.html",
        page="review",
        said=said,
        address=context.url("review", item=entry.path if entry else "", q=search),
        queue=queue,
        counts=" and ".join(describe_review({"proposals": len(ordered) - questions, "questions": questions})),
        start=(queue.number - 1) * ON_A_PAGE + 1,
        rows=[(one, statement_of(one.body)) for one in queue.rows],
        search=search,
        item=shown,
        entry=entry,
        text=kept_text(entry.body) if entry else "",
        replaces=_replaced(reviewer, entry) if entry else None,
        pending=counts_of(places),
        unread=reviewer.store.passed_over,
        panel=panel if panel in PANELS else "",
        typed=typed,
        unsent=unsent,
        near=[(one, statement_of(one.body)) for one in near],
        old=old,
        last=reviewer.last_decision(),
        said_on=parse_local_day(entry.surfaced_at) if entry else None,
        is_said=entry is not None and any(source.session for source in entry.sources),
        surface_kind=SURFACE_KIND,
        kind_in_words=KIND_IN_WORDS,
        may_guard=entry is not None and may_guard(entry),
        list_kind=GC_KIND,
    )


def _replaced(reviewer: Reviewer, entry: Entry) -> Entry | None:
    """The entry that approving the proposal supersedes; None if there is none, or the decision will say why not."""
    with suppress(MemoryVaultError):
        replaced = replaced_now(reviewer.store, entry)
        return None if replaced is None else reviewer.store.read(replaced)
    return None


def _old(reviewer: Reviewer, asked: Mapping[str, str], near: Sequence[Entry]) -> tuple[Entry | None, Notice | None]:
    """The entry to compare with: the requested one, else the nearest; and why there is none."""
    name = link_target(asked.get("other", "")) or asked.get("old", "") or (near[0].path if near else "")
    if not name:
        return None, None
    try:
        return reviewer.store.read(resolve_entry(reviewer.store, name)), None
    except (EntryNotFound, EntryInvalid, PathRefused, UsageError) as error:
        return None, Notice(str(error), is_problem=True)


PAGE = Page(
    name="review",
    title="Review",
    key="r",
    routes=_routes,
    waiting=lambda pending: pending.proposals + pending.questions,
    keys=(
        ("a", "approve"),
        ("l", "approve, and give it to every session at its start"),
        ("m", "approve, and stop the agent once before it breaks this rule"),
        ("k", "keep both, where it would replace another"),
        ("e", "edit, then approve"),
        ("r", "reject"),
        ("p", "supersede: compare with the nearest entries"),
        ("s", "skip: the next one; also j"),
        ("b", "the one before"),
        ("u", "undo the last decision"),
    ),
)
