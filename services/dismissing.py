"""Dismiss an entry that the user calls wrong: the note stays, but is not recalled and not proposed again.

Also edits the text of an entry in use.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..pipelines.incubation import GC_KIND, SURFACE_KIND
from ..pipelines.likeness import statement_of
from ..pipelines.review import Reject
from ..runtime.errors import EntryInvalid
from ..runtime.layout import INBOX, REVIEW
from ..vault.active import is_entry_place
from ..vault.automemory import INDEX_KIND, TOPIC_KIND
from ..vault.entry import DISMISSED, PATTERN_KIND, Entry, fingerprint
from ..vault.fields import StoreValue
from ..vault.pending import is_idea_path, pending_folder
from ..vault.scrubbed import Scrubbed
from .entry_names import is_living
from .journal import rewritten
from .marking import Marked
from .retrying import read_seen
from .reviewing import Reviewer

RUN = "dismiss"
"""Run name prefix of dismissals."""
EDIT_RUN = "edit"
"""Run name prefix of edits."""
_DECIDED_ELSEWHERE: Mapping[str, str] = {
    SURFACE_KIND: "it is a question: answer it with `memory review`",
    GC_KIND: "it is a question: answer it with `memory review`",
    PATTERN_KIND: "it is on the watchlist: `memory skills watchlist dismiss`",
    TOPIC_KIND: "it is a note of the agent's own: `memory vault topics rm`",
    INDEX_KIND: "it is the index of the agent's own notes, made of them: `memory vault topics rm` removes one",
}


def reason_against(entry: Entry) -> str:
    """Return why the note can't be dismissed, and what to do instead; '' if it can."""
    why = _DECIDED_ELSEWHERE.get(entry.kind or "")
    if is_idea_path(entry.path):
        return "it is an idea: `memory idea archive` or `memory idea delete`"
    if why is not None:
        return why
    if not is_living(entry):
        return f"its status is {entry.effective_status}, so it is not in use"
    if pending_folder(entry.path) not in (REVIEW, INBOX) and not is_entry_place(entry.path):
        return "it is a note of MemoryVault's own, or in a special folder"
    return ""


def require_dismissible(entry: Entry) -> None:
    """Raise EntryInvalid, with what to do instead, if the note can't be dismissed."""
    if why := reason_against(entry):
        raise EntryInvalid(f"{entry.path} can't be dismissed: {why}")


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
        if pending_folder(path) or reason_against(entry):
            raise EntryInvalid(f"{path} is not an entry in use")
        if str(body).strip() == entry.body.strip():
            return False
        after = store.render_edit(entry.text, {"fingerprint": fingerprint(statement_of(str(body)))}, body)
        run = journal.new_run(EDIT_RUN)
        journal.commit(rewritten(entry, after), run=run, actor="review", what=f"edited: {entry.slug}")
    return True
