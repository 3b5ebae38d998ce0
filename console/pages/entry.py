"""One entry: text, history and evidence; edit, mark or dismiss it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...runtime.errors import EntryNotFound
from ...services.entry_decisions import (
    RUN,
    Marked,
    dismiss,
    edit,
    mark_always,
    mark_guard,
    why_not_dismissed,
    why_not_marked,
)
from ...services.entry_facts import facts_of
from ...services.entry_names import find_entry
from ...services.excerpts import Excerpt, excerpts_of
from ...services.journal import Act, Journal
from ...vault.entry import AGENT_SOURCE, GUARDS, Entry, Source
from ...vault.pending import pending_folder
from ...vault.store import VaultStore
from ..context import ConsoleContext, Notice, Page, attempt, edited_text, routes_of, undone

MOST_ACTS = 50
MOST_SOURCES = 12


@dataclass(frozen=True)
class _Step:
    """An act that changed the note; `before` and `after`: its text then, None if there was none or it is unknown."""

    act: Act
    before: str | None
    after: str | None

    @property
    def shows_both(self) -> bool:
        """Whether there are two different texts to compare."""
        return self.before is not None and self.after is not None and self.before != self.after


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        return shown(request, request.query_params.get("path", ""))

    def dismiss_it(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        return shown(request, form.get("item", ""), attempt(lambda: _dismissed(context, form)))

    def mark(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        path = form.get("item", "")

        def marked() -> Notice:
            nonlocal path
            done = _marked(context, form)
            path = done.path
            return Notice(done.said)

        said = attempt(marked)
        return shown(request, path, said)

    def edit_it(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        said = attempt(lambda: _edited(context, form))
        return shown(request, form.get("item", ""), said, typed=form.get("body", "") if said.is_problem else "")

    def undo(request: Request) -> Response:
        form: Mapping[str, str] = request.state.form
        return shown(request, form.get("item", ""), undone(context, form.get("act", ""))[0])

    def shown(request: Request, path: str, said: Notice | None = None, typed: str = "") -> Response:
        store = context.store()
        entry = _find(store, path)
        last = context.reviewer().last_decision()
        is_last_here = last and last.run.startswith(f"{RUN}:") and last.changes[0].path == entry.path
        steps = _history(Journal(context.settings.state, store), store, entry)
        return context.page(
            request,
            "entry.html",
            page="entry",
            title=entry.title,
            said=said,
            address="" if said is None else context.entry_url(entry.path),
            is_edited=bool(typed) or (said is None and request.query_params.get("panel") == "edit"),
            typed=typed,
            # A waiting note is decided on its own page.
            can_dismiss=pending_folder(entry.path) == "" and not why_not_dismissed(entry),
            can_mark=not why_not_marked(entry),
            guards=GUARDS,
            last=last if is_last_here else None,
            entry=entry,
            steps=steps[:MOST_ACTS],
            more_steps=max(0, len(steps) - MOST_ACTS),
            evidence=_evidence(context, entry.sources[:MOST_SOURCES]),
            more_evidence=max(0, len(entry.sources) - MOST_SOURCES),
            fields=facts_of(entry),
            agent=AGENT_SOURCE,
        )

    return routes_of("/entry", look, dismiss=dismiss_it, mark=mark, edit=edit_it, undo=undo)


def _dismissed(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    done = dismiss(context.reviewer(), form.get("item", ""), form.get("hash", ""))
    context.changed()
    return Notice(done.said)


def _marked(context: ConsoleContext, form: Mapping[str, str]) -> Marked:
    reviewer, path, seen = context.reviewer(), form.get("item", ""), form.get("hash", "")
    mark = form.get("mark", "")
    if mark in ("always", "not always"):
        done = mark_always(reviewer, path, mark == "always", seen)
    else:
        done = mark_guard(reviewer, path, "" if mark == "off" else mark, seen)
    context.changed()
    return done


def _edited(context: ConsoleContext, form: Mapping[str, str]) -> Notice:
    body, remark = edited_text(form, "dismiss")
    changed = edit(context.reviewer(), form.get("item", ""), body, form.get("hash", ""))
    context.changed()
    return Notice(f"edited: {form.get('item', '')}{remark}" if changed else "it says that already")


def _find(store: VaultStore, name: str) -> Entry:
    """The entry with this path or name. Raises EntryNotFound, EntryInvalid, UsageError, PathRefused."""
    if not name:
        raise EntryNotFound("which entry? a list, or the search, leads to one")
    # Obsidian's links may start in the folder above the vault.
    return find_entry(store, name.removeprefix(f"{store.vault.name}/"))


def _history(journal: Journal, store: VaultStore, entry: Entry) -> list[_Step]:
    """The acts that changed the note, or the note that it was moved from, newest first."""
    steps: list[_Step] = []
    paths = {entry.path}
    later: str | None = store.read_bytes(entry.path).decode("utf-8", "replace")
    for act in journal.newest():
        touched = [change for change in act.changes if change.path in paths]
        if not touched:
            continue
        # A note that an act creates while it removes another comes from that one: an approved proposal.
        came = any(change.before is None for change in touched)
        gone = [change for change in act.changes if change.after_hash is None and change.before is not None]
        before = next((change.before for change in touched if change.before is not None), None)
        if came and gone and not act.undoes:
            origin = next(
                (one for one in gone if one.path.rsplit("/", 1)[-1] == entry.path.rsplit("/", 1)[-1]), gone[-1]
            )
            before = origin.before
            paths.add(origin.path)
        steps.append(_Step(act, before, later))
        later = before
    return steps


def _evidence(context: ConsoleContext, sources: Sequence[Source]) -> list[tuple[Source, Excerpt | None]]:
    """Each source with the excerpt of its session, None without a session."""
    excerpts = iter(excerpts_of(context.settings, [source for source in sources if source.session]))
    return [(source, next(excerpts) if source.session else None) for source in sources]


PAGE = Page(
    name="entry",
    title="Entry",
    key="",
    routes=_routes,
    keys=(
        ("e", "edit the text"),
        ("l", "give it to every session at its start, or stop that"),
        ("d", "dismiss it: it is wrong"),
        ("u", "undo that"),
    ),
)
