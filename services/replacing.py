"""Find the entry that a proposal would replace now: the entry it names may have moved or been superseded."""

from __future__ import annotations

from contextlib import suppress

from ..pipelines.likeness import Relation, own_words, quotes_of, relation, statement_of, wording_of
from ..pipelines.review import link_target
from ..pipelines.routing import REVERSES
from ..runtime.errors import EntryNotFound
from ..vault.entry import ACTIVE, Entry
from ..vault.pending import pending_folder
from ..vault.store import VaultStore
from .entry_names import is_living, resolve_entry


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
    said = [wording_of(own_words(statement_of(proposal.body))), wording_of(quotes_of(proposal.body))]

    def is_the_same(entry: Entry) -> bool:
        return proposal.contradicts is not None and entry.fingerprint == proposal.contradicts

    def is_meant(entry: Entry) -> bool:
        """Whether it is the rule that a mined proposal contradicts, by fingerprint or words: names are reused."""
        other = wording_of(own_words(statement_of(entry.body)))
        return is_the_same(entry) or any(relation(one, other) is Relation.CONTRADICTS for one in said)

    with suppress(EntryNotFound):
        found = store.read(resolve_entry(store, target))
        # A waiting note may have moved to its place, and its name may now belong to the next waiting note.
        if not is_mined or not pending_folder(found.path) or is_meant(found):
            return found.path if is_living(found) else None
    paths = (other for other in store.walk() if is_mined or other.endswith(f"/{path.rpartition('/')[2]}"))
    rank = {
        entry.path: (not is_the_same(entry), entry.effective_status != ACTIVE, entry.project != proposal.project)
        for entry in store.readable(paths)
        if entry.path != proposal.path and is_living(entry) and (not is_mined or is_meant(entry))
    }
    best = [other for other, place in rank.items() if place == min(rank.values())]
    return best[0] if len(best) == 1 else None
