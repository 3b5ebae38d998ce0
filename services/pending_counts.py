"""Count what waits for the user: the same counts for every command, hook, note and page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from ..vault.pending import PENDING_FOLDERS, describe_other_places, describe_pending, describe_review, group_by_place
from ..vault.store import VaultStore

COMMANDS = {"inbox": "memory vault inbox", "ideas": "memory idea list", "patterns": "memory skills watchlist"}
"""Place outside of `memory review` -> command that shows what waits there."""
INBOX_LIMIT = 50
INCUBATOR_LIMIT = 20


@dataclass(frozen=True, kw_only=True)
class PendingCounts:
    """Numbers of pending things, each counted once; all but `copies` are the places of `vault.pending`."""

    proposals: int
    """Notes in `_review`, without the questions."""
    questions: int
    """Notes in `_review` that ask about ideas, which are counted in `ideas`."""
    copies: int = 0
    """Conflict copies that a sync client left."""
    inbox: int
    ideas: int
    patterns: int = 0
    """Patterns of the watchlist that are neither decided on nor deferred to a later day."""

    @property
    def notes(self) -> int:
        """Number of notes, with the questions, without conflict copies and patterns."""
        return self.proposals + self.questions + self.inbox + self.ideas

    def describe(self) -> str:
        """Return all counts as one text: `8 proposals, 1 question about ideas, 3 in the inbox, 21 ideas`; `nothing`."""
        return describe_pending(asdict(self))

    def with_commands(self) -> list[str]:
        """Return every place with its command: `["8 proposals (memory review)", "21 ideas (memory idea list)"]`."""
        review = " and ".join(describe_review(asdict(self)))
        return [*([f"{review} (memory review)"] if review else []), *self.other_places()]

    def other_places(self) -> list[str]:
        """Return every place except `memory review`, with its command."""
        return [f"{phrase} ({COMMANDS[place]})" for place, phrase in describe_other_places(asdict(self)).items()]


def count_pending(store: VaultStore) -> PendingCounts:
    """Count in the files of the vault. Raises VaultUnavailable."""
    from .conflicts import names_its_note  # Callers that only count paths do without the journal.

    return replace(count_pending_notes(store), copies=sum(map(names_its_note, store.list_notes().copies)))


def count_pending_notes(store: VaultStore) -> PendingCounts:
    """Count without conflict copies, which takes no walk through all folders. Raises VaultUnavailable."""
    return counts_of(list_pending_notes(store))


def counts_of(places: Mapping[str, Collection[str]]) -> PendingCounts:
    """Count the paths by place."""
    return PendingCounts(**{place: len(paths) for place, paths in places.items()})


def count_pending_paths(paths: Iterable[str]) -> PendingCounts:
    """Count by vault-relative paths alone, without conflict copies and patterns."""
    return counts_of({**group_by_place(paths), "patterns": ()})


def list_pending_notes(store: VaultStore) -> dict[str, list[str]]:
    """List the paths of pending notes by place, without conflict copies. Patterns are read. Raises VaultUnavailable."""
    from .discovery.watchlist import is_deferred, is_waiting  # As above.

    groups = group_by_place(store.walk_special(PENDING_FOLDERS))
    today = store.today()
    patterns = store.readable(groups["patterns"])
    groups["patterns"] = [note.path for note in patterns if is_waiting(note) and not is_deferred(note, today)]
    return groups


def why_full(pending: PendingCounts) -> list[str]:
    """Return the warnings that inbox and incubator hold more than anybody reads."""
    found = []
    if pending.inbox > INBOX_LIMIT:
        found.append(f"the inbox holds {pending.inbox} entries, more than {INBOX_LIMIT}: `memory vault inbox`")
    if pending.ideas > INCUBATOR_LIMIT:
        found.append(f"the incubator holds {pending.ideas} ideas, more than {INCUBATOR_LIMIT}: `memory idea list`")
    return found
