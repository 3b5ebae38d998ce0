"""Conflict copies that a sync client left beside a note: find them, and carry out the user's choice."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from ..pipelines.scrub import Policy
from ..runtime.errors import EditConflict, EntryInvalid, EntryNotFound, MemoryVaultError, UsageError
from ..runtime.layout import original_name
from ..vault.entry import INCIDENT, hash_of, parse_text
from ..vault.header import conflict_line
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .journal import Change, Journal, text_of
from .scrubbing import scrub_note
from .tombstones import NOTE as TAKEN_BACK
from .tombstones import evidence_of, text_with

Choice = Literal["mine", "theirs", "merged"]
CHOICES: tuple[Choice, ...] = ("mine", "theirs")
"""Choices that need no editor."""
_MINE, _BETWEEN, _THEIRS = "<<<<<<< the note", "=======", ">>>>>>> the copy"


@dataclass(frozen=True)
class ConflictCopy:
    """A conflict copy and the note beside it. `mine` is None if that note does not exist."""

    path: str
    note: str
    mine: str | None
    theirs: str

    @property
    def seen(self) -> str:
        """A hash of both texts as the user saw them."""
        return hash_of(f"{self.mine}\0{self.theirs}")

    @property
    def difference(self) -> list[str]:
        """Lines that differ, each after `-` (only in the note) or `+` (only in the copy); [] if none differ."""
        lines = difflib.unified_diff((self.mine or "").splitlines(), self.theirs.splitlines(), lineterm="", n=1)
        return [line for line in lines if not line.startswith(("---", "+++"))]

    def both(self) -> str:
        """Return one text with the common lines once and the differences between marks, to be edited."""
        mine, theirs = (self.mine or "").splitlines(), self.theirs.splitlines()
        merged: list[str] = []
        for tag, a, b, c, d in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
            same = tag == "equal"
            merged += mine[a:b] if same else [_MINE, *mine[a:b], _BETWEEN, *theirs[c:d], _THEIRS]
        return "\n".join(merged) + "\n"


def copy_paths(store: VaultStore) -> list[str]:
    """Return the paths of all copies whose name tells their note, sorted. Raises VaultUnavailable."""
    return sorted(path for path in store.list_notes().copies if names_its_note(path))


def names_its_note(copy: str) -> bool:
    """Whether the copy's file name tells which note it belongs to."""
    return original_name(copy.rpartition("/")[2]) is not None


def waiting_copies(store: VaultStore) -> list[ConflictCopy]:
    """Return all copies, sorted by path. Raises VaultUnavailable."""
    return [copy for path in copy_paths(store) for copy in _read(store, path)]


def find_copy(store: VaultStore, name: str) -> ConflictCopy:
    """Return the copy with this path or file name. Raises EntryNotFound, or UsageError if several fit."""
    wanted = (name, f"{name}.md")
    found = [copy for copy in waiting_copies(store) if copy.path in wanted or copy.path.rpartition("/")[2] in wanted]
    if len(found) > 1:
        raise UsageError(f"{name} is the name of several copies; give the path: {', '.join(c.path for c in found)}")
    if not found:
        raise EntryNotFound(f"there is no conflict copy called {name}")
    return found[0]


def notes_in_conflict(store: VaultStore) -> list[str]:
    """Return the notes with both sides of a git merge; their content is never used. Raises VaultUnavailable."""
    found = []
    for path in store.walk():
        with suppress(MemoryVaultError):
            data = store.read_bytes(path)
            if conflict_line(data.decode("utf-8", "replace")):
                found.append(path)
    return found


def settle_copy(journal: Journal, copy: ConflictCopy, choice: Choice, *, run: str, text: str | None = None) -> str:
    """Keep one text and remove the copy; the journal keeps both, so that `memory review --undo` restores them.

    `text` is the user's merged text. Returns the note's path. Raises EditConflict if either changed since `copy` was
    read, EntryInvalid if the text still has the marks, VaultUnavailable.
    """
    if choice == "merged" and (not text or any(mark in text.splitlines() for mark in (_MINE, _THEIRS))):
        raise EntryInvalid("the text is not merged yet: choose a text between the marks, and remove the marks")
    store = journal.store
    with journal.locked():
        now = next(_read(store, copy.path), None)
        if now is None or now.seen != copy.seen:
            raise EditConflict(f"{copy.note} or its copy was changed since you saw it: look at it again")
        changes = [Change(copy.path, copy.theirs, None)]
        if choice == "merged":
            merged = (text or "").rstrip("\n") + "\n"
            is_incident = parse_text(copy.note, merged).kind == INCIDENT
            clean, _ = scrub_note(merged, Policy.FULL if is_incident else Policy.SECRETS)
            kept: Scrubbed | None = Scrubbed.trusted(clean, reason="scrubbed here, but for names, dates and ids")
        elif choice == "theirs" or copy.mine is None:
            kept = Scrubbed.trusted(copy.theirs, reason="it was in the vault before, under another name")
        else:
            kept = None
        if copy.note == TAKEN_BACK and choice != "merged":
            mine = copy.mine or ""  # The removals that were recorded on both devices stay, whichever text is kept.
            both = text_with(mine if kept is None else kept, evidence_of(mine) | evidence_of(copy.theirs))
            kept = Scrubbed.trusted(both, reason="both lists were in the vault before")
        if kept is not None and kept != copy.mine:
            changes.insert(0, Change(copy.note, copy.mine, kept))
        journal.commit(changes, run=run, actor="review", what=f"{choice} kept of a sync conflict: {copy.note}")
    return copy.note


def _read(store: VaultStore, path: str) -> Iterator[ConflictCopy]:
    """Return the copy; None if it is gone or its name is not understood."""
    folder, separator, name = path.rpartition("/")
    original = original_name(name)
    theirs = text_of(store, path)
    if original is not None and theirs is not None:
        note = f"{folder}{separator}{original}"
        yield ConflictCopy(path, note, text_of(store, note), theirs)
