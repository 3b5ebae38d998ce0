"""Find the entry that a proposal would replace now: the entry it names may have moved or been superseded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..pipelines.likeness import Relation, own_words, quotes_of, relation, statement_of, wording_of
from ..pipelines.review import ARCHIVED, link_target
from ..pipelines.routing import REVERSES
from ..runtime.errors import EntryInvalid, EntryNotFound, PathRefused
from ..vault.entry import ACTIVE, SUPERSEDED, Entry
from ..vault.pending import pending_folder
from ..vault.store import VaultStore
from .entry_names import is_living, resolve_entry

_IsMeant = Callable[[Entry], bool]


def replaced_now(store: VaultStore, proposal: Entry) -> str | None:
    """Return the path of the active entry that approving the proposal would supersede; None if there is none (any
    more).

    If the user has approved another entry in place of the named one, that one is returned: otherwise two rules with
    exclusive values would hold. A dismissed entry is never returned. Raises UsageError (a name of several),
    EntryInvalid, PathRefused.
    """
    if proposal.supersedes is None:
        return None
    target = link_target(proposal.supersedes)
    path = f"{target.removesuffix('.md')}.md"
    is_mined = f"{REVERSES}{path}" in proposal.body
    is_meant = _meaning_of(proposal) if is_mined else lambda entry: True
    with suppress(EntryNotFound):
        found = store.read(resolve_entry(store, target))
        # A waiting note may have moved to its place, and its name may now belong to the next waiting note.
        if not pending_folder(found.path) or is_meant(found):
            return found.path if is_living(found) else None
    superseded = _superseded(store)
    if (taken := _successor(store, path, superseded, is_meant)) is not None:
        return taken
    # It may have moved since the proposal, from _review to its place, and been superseded there.
    has_its_name = _named_like(path) if is_mined else lambda other: other.endswith(f"/{path.rpartition('/')[2]}")
    named = (other for other in store.walk() if has_its_name(other) and other != proposal.path)
    moved = [entry for entry in store.readable(named) if is_living(entry) and is_meant(entry)]
    if moved:
        return _nearest(moved, proposal)
    places = {_path_before(entry) for entry in superseded if has_its_name(_path_before(entry)) and is_meant(entry)}
    return _successor(store, places.pop(), superseded, is_meant) if len(places) == 1 else None


def _meaning_of(proposal: Entry) -> _IsMeant:
    """Return a test whether an entry is the rule that the proposal contradicts: names are reused.

    It is known by its fingerprint, or, if that changed or is unknown, by its words.
    """
    said = [wording_of(own_words(statement_of(proposal.body))), wording_of(quotes_of(proposal.body))]

    def is_meant(entry: Entry) -> bool:
        if proposal.contradicts is not None and entry.fingerprint == proposal.contradicts:
            return True
        other = wording_of(own_words(statement_of(entry.body)))
        return any(relation(one, other) is Relation.CONTRADICTS for one in said)

    return is_meant


def _named_like(path: str) -> Callable[[str], bool]:
    """Whether the path has the name of the note at `path`, or that name with a number because it was taken."""
    name = path.rpartition("/")[2].removesuffix(".md")
    pattern = re.compile(rf"{re.escape(name)}(?:-\d+)?\.md")
    return lambda other: pattern.fullmatch(other.rpartition("/")[2]) is not None


def _nearest(moved: Sequence[Entry], proposal: Entry) -> str | None:
    """Return the only path in use, or else the only proposal; None if several match."""
    rank = {entry.path: (entry.effective_status != ACTIVE, entry.project != proposal.project) for entry in moved}
    best = [path for path, place in rank.items() if place == min(rank.values())]
    return best[0] if len(best) == 1 else None


def _successor(store: VaultStore, path: str, superseded: Sequence[Entry], is_meant: _IsMeant) -> str | None:
    """Return the active entry that finally replaced the one that was at `path`."""
    gone = [entry for entry in superseded if _path_before(entry) == path and is_meant(entry)]
    passed: set[str] = set()
    while gone and path not in passed:
        passed.add(path)
        path = max(gone, key=lambda entry: entry.superseded_at or "").superseded_by or ""
        with suppress(EntryNotFound, EntryInvalid, PathRefused):
            if is_living(store.read(path)):
                return path
        gone = [entry for entry in superseded if _path_before(entry) == path]
    return None


def _superseded(store: VaultStore) -> list[Entry]:
    archived = (path for path in store.walk() if path.startswith(f"{ARCHIVED}/"))
    return [entry for entry in store.readable(archived) if entry.effective_status == SUPERSEDED and entry.superseded_by]


def _path_before(entry: Entry) -> str:
    """Return where an archived entry was; see `archive_name`."""
    return entry.path.removeprefix(f"{ARCHIVED}/").removesuffix(".md").rpartition(".")[0]
