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
    with values of which only one can hold, two would hold else. What was dismissed has none. Raises UsageError (a name
    of several), EntryInvalid, PathRefused.
    """
    if proposal.supersedes is None:
        return None
    target = link_target(proposal.supersedes)
    with suppress(EntryNotFound):
        found = resolve_entry(store, target)
        return found if is_living(store.read(found)) else None
    path = f"{target.removesuffix('.md')}.md"
    if (taken := _successor(store, path)) is not None:
        return taken
    # It may have moved since it was proposed, from _review to its place, and have been superseded there.
    name = path.rsplit("/", 1)[-1]
    with suppress(EntryNotFound, EntryInvalid, UsageError):
        moved = resolve_entry(store, name)
        return moved if moved != proposal.path else None
    moved_to = {_path_before(entry) for entry in _superseded(store) if _path_before(entry).endswith(f"/{name}")}
    return _successor(store, moved_to.pop()) if len(moved_to) == 1 else None


def _successor(store: VaultStore, path: str) -> str | None:
    """The living entry that took the place of the one that was at `path`, over any number of steps."""
    superseded = _superseded(store)
    passed: set[str] = set()
    while path not in passed:
        passed.add(path)
        gone = [entry for entry in superseded if _path_before(entry) == path]
        if not gone:
            return None
        path = max(gone, key=lambda entry: entry.superseded_at or "").superseded_by or ""
        with suppress(EntryNotFound, EntryInvalid, PathRefused):
            if is_living(store.read(path)):
                return path
    return None


def _superseded(store: VaultStore) -> list[Entry]:
    archived = (path for path in store.walk() if path.startswith(f"{ARCHIVED}/"))
    return [entry for entry in store.readable(archived) if entry.effective_status == SUPERSEDED and entry.superseded_by]


def _path_before(entry: Entry) -> str:
    """Where an archived entry was, see `archive_name`."""
    return entry.path.removeprefix(f"{ARCHIVED}/").removesuffix(".md").rpartition(".")[0]
