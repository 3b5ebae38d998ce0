"""The user's decisions on entries in use: to give one to every session, to guard the agent's actions by it, to dismiss
it (the note stays, but is not recalled and not proposed again), or to change its text.

Only a person may do this (docs/threat-model.md): commands and console call it, agents and the miner never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..pipelines.incubation import GC_KIND, SURFACE_KIND
from ..pipelines.likeness import statement_of
from ..pipelines.review import Reject, with_title_of_statement
from ..runtime.errors import EntryInvalid
from ..runtime.layout import ALWAYS_LOAD, INBOX, REVIEW
from ..vault.active import is_entry_place
from ..vault.automemory import INDEX_KIND, TOPIC_KIND
from ..vault.entry import DISMISSED, GUARDS, PATTERN_KIND, Entry, fingerprint
from ..vault.fields import StoreValue
from ..vault.pending import is_idea_path, pending_folder
from ..vault.scrubbed import Scrubbed
from .entry_names import is_living
from .journal import Change, rewritten
from .remembering import free_path
from .retrying import read_seen
from .reviewing import Reviewer

Changes = Callable[[Entry], list[Change]]
RUN = "entry"
"""Run name prefix of these decisions."""
_DECIDED_ELSEWHERE: Mapping[str, str] = {
    SURFACE_KIND: "it is a question: answer it with `memory review`",
    GC_KIND: "it is a question: answer it with `memory review`",
    PATTERN_KIND: "it is on the watchlist: `memory skills watchlist dismiss`",
    TOPIC_KIND: "it is a note of the agent's own: `memory vault topics rm`",
    INDEX_KIND: "it is the index of the agent's own notes, made of them: `memory vault topics rm` removes one",
}


@dataclass(frozen=True)
class Marked:
    """Path and status of the note; `was_so`: nothing had to be changed."""

    path: str
    verdict: str
    was_so: bool = False

    @property
    def said(self) -> str:
        """As it is told to the user."""
        return f"{self.verdict}{' already' * self.was_so}: {self.path}"


def why_not_marked(entry: Entry) -> str:
    """Return why the note can't be marked, and what to do instead; '' if it can."""
    if pending_folder(entry.path) in (REVIEW, INBOX):
        return f"it waits for your decision: `memory review --decide {entry.slug}=always` (or approve, remind)"
    if is_idea_path(entry.path):
        return "it is an idea"
    if entry.kind in (TOPIC_KIND, INDEX_KIND) and not (entry.always_load or entry.guard):  # A mark can be taken off.
        return "it is a note of the agent's own; `memory save` makes a rule of yours"
    return _why_not_in_use(entry)


def why_not_dismissed(entry: Entry) -> str:
    """Return why the note can't be dismissed, and what to do instead; '' if it can."""
    if is_idea_path(entry.path):
        return "it is an idea: `memory idea archive` or `memory idea delete`"
    return _DECIDED_ELSEWHERE.get(entry.kind or "") or _why_not_in_use(entry)


def _why_not_in_use(entry: Entry) -> str:
    """Return why the note is neither an entry in use nor waits for a decision; '' if it is or does."""
    if not is_living(entry):
        return f"its status is {entry.effective_status}, so it is not in use"
    if pending_folder(entry.path) in (REVIEW, INBOX) or is_entry_place(entry.path):
        return ""
    return "it is a note of MemoryVault's own, or in a special folder"


def require_dismissible(entry: Entry) -> None:
    """Raise EntryInvalid, with what to do instead, if the note can't be dismissed."""
    if why := why_not_dismissed(entry):
        raise EntryInvalid(f"{entry.path} can't be dismissed: {why}")


def mark_always(reviewer: Reviewer, path: str, on: bool, expected_hash: str | None = None) -> Marked:
    """Load the entry at every session's start, or no longer. One in `_always-load/` moves into its kind's folder.

    `expected_hash` is the hash of the note as the user saw it. Raises EditConflict if it has changed, EntryNotFound,
    EntryInvalid, VaultUnavailable; nothing is changed then.
    """
    verdict = "given to every session" if on else "not given to every session"

    def changes(entry: Entry) -> list[Change]:
        if entry.always_load == on:
            return []
        target = path
        if not on and f"/{ALWAYS_LOAD}/" in f"/{path}":
            group = path.partition(f"{ALWAYS_LOAD}/")[0]
            target = free_path(f"{group}{entry.kind or 'preferences'}/{path.rsplit('/', 1)[-1]}", reviewer.store)
        text = reviewer.store.render_edit(entry.text, {"always_load": on})
        return rewritten(entry, text, target)

    return _mark(reviewer, path, verdict, changes, expected_hash)


def mark_guard(reviewer: Reviewer, path: str, guard: str, expected_hash: str | None = None) -> Marked:
    """Make the rule guard the agent's actions: 'remind', 'ask' or 'deny'; '' removes the mark.

    Raises as `mark_always`.
    """
    if guard and guard not in GUARDS:
        raise EntryInvalid(f"a guard is one of {', '.join(GUARDS)}, not {guard!r}")

    def changes(entry: Entry) -> list[Change]:
        if entry.guard == guard and bool(entry.extra.get("guard")) == bool(guard):
            return []
        fields: Mapping[str, StoreValue] = {"guard": guard or None}
        return rewritten(entry, reviewer.store.render_edit(entry.text, fields))

    return _mark(reviewer, path, f"guard {guard}" if guard else "no guard", changes, expected_hash)


def _mark(reviewer: Reviewer, path: str, verdict: str, changes: Changes, expected_hash: str | None) -> Marked:
    store, journal = reviewer.store, reviewer.journal
    with journal.locked():
        entry = read_seen(store, path, expected_hash)
        if why := why_not_marked(entry):
            raise EntryInvalid(f"{path} can't be marked: {why}")
        wanted = changes(entry)
        if not wanted:
            return Marked(path, verdict, was_so=True)
        journal.commit(wanted, run=journal.new_run(RUN), actor="review", what=f"{verdict}: {entry.slug}")
        return Marked(wanted[0].path, verdict)


def is_dismissed(entry: Entry) -> bool:
    """Whether the user has dismissed or rejected it."""
    return entry.effective_status in (DISMISSED, "rejected")


def dismiss(reviewer: Reviewer, path: str, expected_hash: str | None = None) -> Marked:
    """Dismiss the entry at `path`, or reject it if it waits for a decision. `memory review --undo` reverts it.

    `expected_hash` is the hash of the note as the user saw it. Raises EditConflict if it has changed, EntryNotFound,
    EntryInvalid, VaultUnavailable; nothing is changed then.
    """
    store, journal = reviewer.store, reviewer.journal
    run = journal.new_run(RUN)
    with journal.locked():
        entry = read_seen(store, path)
        if is_dismissed(entry):
            return Marked(path, entry.effective_status, was_so=True)
        entry = read_seen(store, path, expected_hash)
        require_dismissible(entry)
        if pending_folder(path) not in (REVIEW, INBOX):
            fields: dict[str, StoreValue] = {"status": DISMISSED}
            if entry.fingerprint is None:  # The fingerprint identifies the statement, whatever its kind.
                fields["fingerprint"] = fingerprint(statement_of(entry.body))
            changes = rewritten(entry, store.render_edit(entry.text, fields))
            journal.commit(changes, run=run, actor="review", what=f"dismissed: {entry.slug}")
            return Marked(path, DISMISSED)
    decided = reviewer.decide(path, Reject(), run=run, expected_hash=expected_hash)
    return Marked(decided.path, decided.verdict)


def edit(reviewer: Reviewer, path: str, body: Scrubbed, expected_hash: str) -> bool:
    """Replace the body of the entry at `path`; return False if it has that body already.

    `expected_hash` is the hash of the note as the user saw it. Raises EditConflict if it has changed, EntryNotFound,
    EntryInvalid for a note that is not an entry in use, VaultUnavailable; nothing is changed then.
    """
    store, journal = reviewer.store, reviewer.journal
    with journal.locked():
        entry = read_seen(store, path, expected_hash)
        if pending_folder(path) or why_not_dismissed(entry):
            raise EntryInvalid(f"{path} is not an entry in use")
        if str(body).strip() == entry.body.strip():
            return False
        titled = with_title_of_statement(str(body).strip(), entry.body)
        kept = Scrubbed.trusted(titled, reason="its title is cut from its text, which the caller scrubbed")
        after = store.render_edit(entry.text, {"fingerprint": fingerprint(statement_of(titled))}, kept)
        run = journal.new_run(RUN)
        journal.commit(rewritten(entry, after), run=run, actor="review", what=f"edited: {entry.slug}")
    return True
