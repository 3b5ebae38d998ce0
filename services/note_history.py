"""What the journal says of each note: who changed it, and where the program itself has moved it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..vault.store import VaultStore
from .boundary import is_outside
from .journal import AUTOMATIC, Act, Recorded, hash_of, text_of

BEFORE_ALL = -1
"""The place of what was done before all that the journal remembers."""
_NO_DECISION = AUTOMATIC | {"undo"}


@dataclass(frozen=True)
class Location:
    """Where a note lies, or one of those into which it went."""

    path: str
    digest: str | None
    """`content_hash` as it was last written there, which is not what it is if somebody has edited it."""
    edited: bool
    """Somebody edited it on the way, between two acts."""
    decided: bool
    """The user decided on it; it may be somewhere else by that."""


class NoteHistory:
    """What the journal says of each file, and the files as they are: read once for however many runs are tried."""

    def __init__(self, store: VaultStore, acts: Sequence[Act]) -> None:
        self._store = store
        self._place = {act.id: place for place, act in enumerate(acts)}
        self._of_path: dict[str, list[tuple[Act, Recorded]]] = {}
        self._undone_by: dict[str, list[Act]] = {}
        for act in acts:
            for change in act.changes:
                self._of_path.setdefault(change.path, []).append((act, change))
            for undone in act.undoes:
                self._undone_by.setdefault(undone, []).append(act)
        self._disk: dict[str, str | None] = {}

    def knows(self, path: str) -> bool:
        """Whether any act changed the file."""
        return path in self._of_path

    def later(self, act: Act, path: str) -> list[tuple[Act, Recorded]]:
        """What changed the file after the act, the oldest first."""
        return self._after(self._place[act.id], path)

    def on_disk(self, path: str) -> str | None:
        """The file's text now; None: there is none."""
        if path not in self._disk:
            self._disk[path] = text_of(self._store, path)
        return self._disk[path]

    def older(self) -> list[tuple[str, str]]:
        """The notes whose first record is a change: they are older than what is remembered. Path, and text then."""
        firsts = ((path, made[0][1].before) for path, made in self._of_path.items() if not is_outside(path))
        return [(path, before) for path, before in firsts if before is not None]

    def locations(
        self, path: str, act: Act | None, written: str | None, undone: Collection[str] = ()
    ) -> list[Location]:
        """Where the note is now that the act left at `path`: there, or where acts of the program moved it; several,
        where it went into another note and a copy into the archive.

        `act`: None is before all that is remembered. `written`: its `content_hash` then, where that is known.
        `undone`: ids of acts that are as if they had not been.
        """
        return self._locations(path, BEFORE_ALL if act is None else self._place[act.id], written, undone, False)

    def _locations(
        self, path: str, place: int, written: str | None, undone: Collection[str], edited: bool
    ) -> list[Location]:
        decided = False
        for act, made in self._after(place, path):
            if act.id in undone:
                continue
            if written is not None and made.before is not None and hash_of(made.before) != written:
                edited = True
            if made.after_hash is None and not self._came_back(act, path):
                # What bears this name after that is another note.
                if act.actor not in AUTOMATIC:
                    return [Location(path, None, edited, True)]
                to = [change for change in act.changes if change.after_hash is not None and not is_outside(change.path)]
                here = self._place[act.id]
                found = [self._locations(each.path, here, each.after_hash, undone, edited) for each in to]
                return [location for each in found for location in each]
            decided = decided or (act.actor not in _NO_DECISION and act.id not in self._undone_by)
            written = made.after_hash or written
        return [Location(path, written, edited, decided)]

    def was_edited(self, path: str, act: Act) -> bool:
        """Whether somebody had edited the note before the act changed it, here or where the program had it before."""
        written: str | None = None
        for other, made in self._of_path.get(path, []):
            if self._place[other.id] > self._place[act.id]:
                break
            if written is not None and made.before is not None and hash_of(made.before) != written:
                return True
            written = made.after_hash
            if made.before is None:
                moved = (each.path for each in other.changes if each.after_hash is None)
                if any(self.was_edited(each, other) for each in moved):
                    return True
        return False

    def _after(self, place: int, path: str) -> list[tuple[Act, Recorded]]:
        return [each for each in self._of_path.get(path, []) if self._place[each[0].id] > place]

    def _came_back(self, act: Act, path: str) -> bool:
        """Was the file that the act removed put back when the act was taken back? Where only its evidence was taken
        out, it was not."""
        undoing = self._undone_by.get(act.id, [])
        return any(each.path == path and each.after_hash is not None for undo in undoing for each in undo.changes)
