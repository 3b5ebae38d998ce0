"""How much waits for the user: one meaning for every command, hook, note and page that tells it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..vault.registry import HEADER_BYTES
from ..vault.store import VaultStore
from ..vault.waiting import PLACES, by_place, in_words
from .conflicts import copy_paths
from .discovery.watchlist import waits_by_its_head


@dataclass(frozen=True)
class Waiting:
    """Counts of what waits, each thing once; the fields are the places of `vault.waiting`."""

    proposals: int
    """In `_review`, but for what asks about an idea."""
    questions: int
    """In `_review`, about ideas that are counted among `ideas`."""
    copies: int
    """Of sync conflicts."""
    inbox: int
    ideas: int
    patterns: int
    """Of the watchlist, neither decided nor deferred to a later day."""

    @property
    def in_words(self) -> str:
        """`8 proposals, 1 question about ideas, 3 in the inbox, 21 ideas`; `nothing`."""
        return in_words(asdict(self))


def what_waits(store: VaultStore) -> Waiting:
    """Counted in the files. Raises VaultUnavailable."""
    counts = {place: len(paths) for place, paths in waiting_notes(store).items()}
    return Waiting(copies=len(copy_paths(store)), **counts)


def waiting_notes(store: VaultStore) -> dict[str, list[str]]:
    """Paths of all that waits but conflict copies, by place; of patterns the heads are read. Raises as the walk."""
    found = by_place(store.walk_special(PLACES))
    today = store.today()
    heads = store.heads(HEADER_BYTES, found["patterns"])
    found["patterns"] = [path for path, head in heads if waits_by_its_head(head.decode("utf-8", "replace"), today)]
    return found
