"""Mark an entry for every session's start, or as a guard for the agent's actions.

Only a person may do this (docs/threat-model.md): commands and console call it, agents and the miner never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..runtime.errors import EntryInvalid
from ..runtime.layout import ALWAYS_LOAD, INBOX, REVIEW
from ..vault.active import is_entry_place
from ..vault.entry import GUARDS, Entry
from ..vault.fields import StoreValue
from ..vault.pending import is_idea_path, pending_folder
from .entry_names import is_living
from .journal import Change, rewritten
from .remembering import free_path
from .retrying import read_seen
from .reviewing import Reviewer

Changes = Callable[[Entry], list[Change]]
RUN = "mark"
"""Run name prefix of markings."""


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


def reason_against(entry: Entry) -> str:
    """Return why the note can't be marked, and what to do instead; '' if it can."""
    if pending_folder(entry.path) in (REVIEW, INBOX):
        return f"it waits for your decision: `memory review --decide {entry.slug}=always` (or approve, remind)"
    if is_idea_path(entry.path):
        return "it is an idea"
    if not is_living(entry):
        return f"its status is {entry.effective_status}, so it is not in use"
    return "" if is_entry_place(entry.path) else "it is a note of MemoryVault's own, or in a special folder"


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
        if why := reason_against(entry):
            raise EntryInvalid(f"{path} can't be marked: {why}")
        wanted = changes(entry)
        if not wanted:
            return Marked(path, verdict, was_so=True)
        journal.commit(wanted, run=journal.new_run(RUN), actor="review", what=f"{verdict}: {entry.slug}")
        return Marked(wanted[0].path, verdict)
