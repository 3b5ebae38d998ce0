"""How many things are pending, that is, wait for the user: counted alike for every command, hook, note and page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..vault.listing import NotePaths
from ..vault.pending import PENDING_FOLDERS, describe_pending, group_by_place
from ..vault.registry import HEADER_BYTES
from ..vault.store import VaultStore


@dataclass(frozen=True, kw_only=True)
class PendingCounts:
    """Numbers of pending things, each counted once; but for `copies`, by the places of `vault.pending`."""

    proposals: int
    """Notes in `_review`, without the questions."""
    questions: int
    """Notes in `_review` that ask about ideas, which are counted in `ideas`."""
    copies: int = 0
    """Copies that a sync client kept of both sides of a conflict."""
    inbox: int
    ideas: int
    patterns: int = 0
    """Patterns of the watchlist that are neither decided on nor deferred to a later day."""

    @property
    def notes(self) -> int:
        """Number of notes, the questions included, but for conflict copies and patterns."""
        return self.proposals + self.questions + self.inbox + self.ideas

    def describe(self) -> str:
        """All counts as one text: `8 proposals, 1 question about ideas, 3 in the inbox, 21 ideas`; `nothing`."""
        return describe_pending(asdict(self))


def count_pending(store: VaultStore, listed: NotePaths | None = None) -> PendingCounts:
    """Count in the files of the vault, or in these of `list_notes`. Raises VaultUnavailable."""
    from .conflicts import names_its_note  # Who only counts paths needs no journal.

    notes, copies = listed or store.list_notes()
    counts = {place: len(paths) for place, paths in list_pending_notes(store, notes).items()}
    return PendingCounts(copies=sum(map(names_its_note, copies)), **counts)


def count_pending_notes(store: VaultStore, notes: Iterable[str] | None = None) -> PendingCounts:
    """The same but for conflict copies, without a walk through all folders, or of these `notes`.

    Raises VaultUnavailable.
    """
    return PendingCounts(**{place: len(paths) for place, paths in list_pending_notes(store, notes).items()})


def count_pending_paths(paths: Iterable[str]) -> PendingCounts:
    """Count by vault-relative paths alone: neither conflict copies nor patterns."""
    groups = group_by_place(paths)
    return PendingCounts(**{place: len(group) for place, group in groups.items() if place != "patterns"})


def list_pending_notes(store: VaultStore, notes: Iterable[str] | None = None) -> dict[str, list[str]]:
    """Paths of all pending notes, or of those among `notes`, by place, without conflict copies. Of patterns the heads
    are read.

    Raises VaultUnavailable.
    """
    from .discovery.watchlist import waits_by_its_head  # As above.

    groups = group_by_place(store.walk_special(PENDING_FOLDERS) if notes is None else notes)
    today = store.today()
    heads = store.heads(HEADER_BYTES, groups["patterns"])
    groups["patterns"] = [path for path, head in heads if waits_by_its_head(head.decode("utf-8", "replace"), today)]
    return groups
