"""What a proposal would replace by now: the entry that it names may have moved, or another may have its place."""

from __future__ import annotations

from contextlib import suppress

from ..pipelines.review import ARCHIVED, link_target
from ..vault.entry import SUPERSEDED, Entry
from ..vault.errors import EntryInvalid, EntryNotFound, PathRefused, UsageError
from ..vault.store import VaultStore
from .entry_names import is_living, resolve_entry


def replaced_now(store: VaultStore, proposal: Entry) -> str | None:
    """Path of the living entry that approving the proposal would supersede; None for none, or none any more.

    Where the user has approved another one in the place of the entry that it names, that is in its place: of rules
    with values of which only one can hold, two would hold else. Raises UsageError (a name of several), EntryInvalid,
    PathRefused.
    """
    if proposal.supersedes is None:
        return None
    target = link_target(proposal.supersedes)
    with suppress(EntryNotFound):
        return resolve_entry(store, target)
    # It may have moved since it was proposed, from _review to its place; or it was put away.
    with suppress(EntryNotFound, UsageError):
        moved = resolve_entry(store, target.rsplit("/", 1)[-1])
        if moved != proposal.path:
            return moved
    return _successor(store, f"{target.removesuffix('.md')}.md")


def _successor(store: VaultStore, path: str) -> str | None:
    """The living entry that took the place of the one that was at `path`, over any number of steps."""
    passed: set[str] = set()
    while path not in passed:
        passed.add(path)
        archived = f"{ARCHIVED}/{path}."
        gone = [
            entry
            for entry in store.readable(each for each in store.walk() if each.startswith(archived))
            if entry.effective_status == SUPERSEDED and entry.superseded_by is not None
        ]
        if not gone:
            return None
        path = max(gone, key=lambda entry: entry.superseded_at or "").superseded_by or ""
        with suppress(EntryNotFound, EntryInvalid, PathRefused):
            if is_living(store.read(path)):
                return path
    return None
