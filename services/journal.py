"""The journal of vault changes: change several files as one, and keep what undo needs.

An act is first written to `pending.json`, then applied file by file (`pending.steps` lists the files already done),
then appended to `changes.jsonl`. After a crash, the next command or job completes the act if part of it was applied,
and rolls it back if a person has meanwhile edited one of the remaining files. Either way all files end in the state
before the act or in the state after it.

The journal is local to the device and may be deleted: decisions are kept in the notes. `memory undo` reads it.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from ..pipelines.review import ARCHIVED
from ..runtime.atomic_file import append_synced, replace_file
from ..runtime.errors import (
    EditConflict,
    EntryExists,
    EntryNotFound,
    OutsideUnavailable,
    PathRefused,
    VaultUnavailable,
)
from ..runtime.json_text import parse_json
from ..runtime.killpoint import kill_point
from ..runtime.layout import StatePaths, make_private_folder, open_private
from ..vault.boundary import Consent
from ..vault.entry import Entry, hash_of
from ..vault.note_text import decode_note
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .boundary import is_outside, outside_write, require_consent, text_outside, without_change
from .rejected_texts import rejected_by, with_restored, without_rejected

log = logging.getLogger(__name__)

DAMAGED = "pending.damaged.json"
MAX_JOURNAL_BYTES = 16 * 1024 * 1024
"""Above this size the journal is renamed to `changes.1.jsonl`, which replaces the previous one."""

Actor = Literal[
    "reflection",
    "triage",
    "adaptation",
    "review",
    "idea",
    "undo",
    "agent",
    "seed",
    "migrate",
    "topics",
    "import",
]
"""Who made a change."""
AUTOMATIC: frozenset[str] = frozenset({"reflection", "triage", "adaptation", "agent", "seed", "migrate", "import"})
"""The actors whose acts `memory undo --last` takes back: the program itself, agents' proposals, and commands that
change many files at once. Acts of the other actors are single decisions of the user, or of an agent told to note
something."""

BACKFILL = "backfill"
"""The run name prefix of `memory reflect corpus`; all its sessions share one run."""


@dataclass(frozen=True)
class Change:
    """A change of one file: its text before (None: the file is new) and after (None: the file is removed).

    An absolute path is outside the vault; such a change needs the user's consent.
    """

    path: str
    before: str | None
    after: Scrubbed | None


@dataclass(frozen=True)
class FolderMove:
    """The renaming of a folder, done before any file of the act is changed."""

    path: str
    to: str


@dataclass(frozen=True)
class Recorded:
    """One changed file of a completed act."""

    path: str
    before: str | None
    """The text before; None: the file did not exist."""
    after_hash: str | None
    """`content_hash` after the change; None: the file was removed."""


@dataclass(frozen=True)
class Act:
    """Changes made together. `run` groups the acts of one job or command."""

    id: str
    run: str
    actor: str
    what: str
    session: str
    at: str
    """UTC, ISO 8601 with Z."""
    changes: tuple[Recorded, ...]
    undoes: tuple[str, ...] = ()
    """Ids of the acts that this one takes back."""
    moves: tuple[FolderMove, ...] = ()


def rewritten(entry: Entry, text: Scrubbed, target: str | None = None) -> list[Change]:
    """Return the changes that give an entry's note a new text and, with `target`, a new path."""
    if target in (None, entry.path):
        return [Change(entry.path, entry.text, text)]
    return [Change(target, None, text), Change(entry.path, entry.text, None)]


def text_of(store: VaultStore, path: str) -> str | None:
    """Return the file's exact text, or None if there is no file. Raises PathRefused, VaultUnavailable."""
    if is_outside(path):
        return text_outside(store, path)
    try:
        return decode_note(store.read_bytes(path))
    except EntryNotFound:
        return None


class Journal:
    """Apply and record changes, always under the vault's lock."""

    def __init__(self, state: StatePaths, store: VaultStore, *, max_bytes: int = MAX_JOURNAL_BYTES) -> None:
        self._folder = Path(state.journal)
        self._pending = Path(state.pending_change)
        self.store = store
        """The vault that the journal writes to."""
        self._max_bytes = max_bytes

    @property
    def files(self) -> tuple[Path, ...]:
        """The journal's files, oldest first; they may be absent."""
        return self._folder / "changes.1.jsonl", self._folder / "changes.jsonl"

    @property
    def leftovers(self) -> tuple[Path, ...]:
        """Temporary files of killed writers, and a pending act that could not be read. They are of no further use.

        Hold the vault's lock: otherwise one of them may be a file that is being written."""
        return *sorted(self._folder.glob(".*")), *self._folder.glob(DAMAGED)

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupted act is waiting for `recover`."""
        return self._pending.exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the vault's lock over read, check and commit, after recovering an interrupted act. Re-entrant.

        Raises PathRefused, VaultUnavailable.
        """
        with self.store.lock():
            self.recover()
            yield

    def stamp(self) -> str:
        """Return the current time in the format of acts and entries."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_run(self, name: str) -> str:
        """Return a new run name for the acts of one job or command."""
        return f"{name}:{self.stamp()}:{secrets.token_hex(3)}"

    def commit(
        self,
        changes: Sequence[Change],
        *,
        run: str,
        actor: Actor,
        what: str,
        session: str = "",
        undoes: Sequence[str] = (),
        moves: Sequence[FolderMove] = (),
        consent: Consent | None = None,
    ) -> Act:
        """Make all changes or none. `changes` name files as they are after the `moves`.

        Raises EditConflict, EntryExists or EntryNotFound if a file or folder is not in the expected state,
        BoundaryRefused for a change outside the vault without consent, OutsideUnavailable if such a file cannot be
        written (nothing is changed then), PathRefused, VaultUnavailable.
        """
        act = {
            "v": 1,
            "id": secrets.token_hex(8),
            "run": run,
            "actor": actor,
            "what": what,
            "session": session,
            "at": self.stamp(),
            "undoes": list(undoes),
            "changes": [{"path": c.path, "before": c.before, "after": c.after} for c in changes],
            **({"moves": [{"path": m.path, "to": m.to} for m in moves]} if moves else {}),
            **({"consent": str(consent)} if consent is not None else {}),
        }
        with self.locked():
            for change in changes:
                self._expect(change, moves, consent)
            for move in moves:
                if not self.store.is_taken(move.path):
                    raise EntryNotFound(f"there is no folder {move.path}")
                if self.store.is_taken(move.to):
                    raise EntryExists(f"there is already a folder {move.to}")
            with self._writing():
                make_private_folder(str(self._folder))
                replace_file(self._pending, json.dumps(act).encode("ascii"))
            kill_point("journal-pending")
            try:
                self._finish(act)
            except VaultUnavailable as error:
                self._take_back_unwritten(act, error)
                raise
        return self._read(_history(act))

    def _read(self, line: Mapping[str, Any]) -> Act:
        return _done(with_restored(line, lambda path: text_of(self.store, path)))

    def recover(self) -> bool:
        """Complete or roll back an interrupted act; return whether there was one. Raises VaultUnavailable,
        PathRefused."""
        if not self._pending.exists():
            return False
        with self.store.lock():
            act = self._read_pending()
            if act is None:
                return False
            self.store.require_vault()
            if any(done.id == act["id"] for done in self.acts()):
                # All of it was applied. Later edits by a person do not matter.
                self._forget_pending()
                return True
            moved = any(self._is_moved(act, move) for move in act.get("moves", ()))
            if not moved and not any(self._was_made(act, change) for change in act["changes"]):
                self._forget_pending()
                return True
            log.warning("a change that was interrupted is ended: %s", act["what"])
            try:
                self._finish(act)
            except (EditConflict, EntryExists, OutsideUnavailable, PathRefused) as error:
                # Rolled back: what cannot be written must not block all later changes.
                log.warning("it was rolled back: %s", error)
        return True

    def traced(self, paths: Collection[str]) -> tuple[frozenset[str], Mapping[str, frozenset[str]]]:
        """Return the paths of these deleted files, also those that they had before the program moved them, and by act
        id those whose earlier texts go."""
        gone = set(paths)
        replaced: dict[str, frozenset[str]] = {}
        until: frozenset[str] = frozenset()
        for act in reversed(self.acts()):  # The act that moved a file knows its earlier path.
            touched = {change.path for change in act.changes}
            if touched & gone:
                until |= {path for path in touched if any(old.startswith(f"{ARCHIVED}/{path}.") for old in gone)}
                gone |= {path for path in touched if not is_outside(path) and not self.store.is_taken(path)}
            replaced[act.id] = until
        return frozenset(gone), replaced

    def forget(self, paths: Collection[str]) -> None:
        """Remove the texts and names of these deleted files from the journal, also under their earlier paths. Acts
        without any remaining change are removed and cannot be taken back.

        With an archived text go the earlier texts of the note that replaced it. Raises VaultUnavailable.
        """
        with self.store.lock():
            gone, replaced = self.traced(paths)
            names = {PurePosixPath(path).stem for path in gone}

            def left_of(act: dict[str, Any]) -> dict[str, Any] | None:
                left = _without(act, gone, names)
                return left and _without(left, replaced.get(str(left["id"]), ()), (), texts_only=True)

            with self._writing():
                self._rewrite(left_of)

    def _forget_texts(self, paths: Collection[str]) -> None:
        """Drop the changes of earlier acts that keep a text of these notes: the user has dismissed them."""
        try:
            self._rewrite(lambda act: _without(act, paths, (), texts_only=True))
        except OSError as error:
            log.warning("the journal keeps the text of a note that was dismissed: %s", error)

    def _rewrite(self, left_of: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """Replace each act by the result of `left_of`; None removes it. Raises OSError."""
        for file in self.files:
            lines = [*_lines(file)]
            after = []
            for line in lines:
                with suppress(ValueError, KeyError, TypeError):
                    act = parse_json(line)
                    left = left_of(act)
                    line = line if left is act else json.dumps(left).encode("ascii") + b"\n" if left else b""
                after.append(line)
            if after != lines:
                replace_file(file, b"".join(after))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn an OSError of the block into VaultUnavailable."""
        try:
            yield
        except OSError as error:
            raise VaultUnavailable(f"the journal {self._folder} cannot be written: {error.strerror}") from error

    def acts(self) -> list[Act]:
        """Return all recorded acts, oldest first, without the lines that cannot be read. Raises VaultUnavailable."""
        return [*self.newest()][::-1]

    def newest(self) -> Iterator[Act]:
        """Yield the recorded acts, newest first; lines are only parsed as far as the caller iterates."""
        seen: set[str] = set()
        for file in reversed(self.files):
            for line in reversed([*_lines(file)]):
                with suppress(ValueError, KeyError, TypeError):
                    act = self._read(parse_json(line))
                    if act.id not in seen:
                        seen.add(act.id)
                        yield act

    # Steps

    def _expect(self, change: Change, moves: Sequence[FolderMove], consent: Consent | None) -> None:
        if is_outside(change.path):
            require_consent(change.path, consent)
        path = change.path
        for move in moves:
            if path.startswith(move.to + "/"):
                path = move.path + path[len(move.to) :]
        found = text_of(self.store, path)
        if found == change.before:
            return
        if change.before is None:
            raise EntryExists(f"there is already an entry {change.path}")
        raise EditConflict(f"{change.path} was changed since it was read; nothing was written: read it again")

    def _finish(self, act: Mapping[str, Any]) -> None:
        """Apply the remaining steps and record the act; if a person has edited a file meanwhile, roll back."""
        try:
            for move in act.get("moves", ()):
                if not self._is_moved(act, move):
                    self.store.move_folder(move["path"], move["to"])
                    self._note_step(act, move["to"])
                    kill_point("journal-applied")
            steps = self._steps(act)
            for change in act["changes"]:
                if change["path"] not in steps and not self._is_done(change):
                    self._apply(act, change["path"], change["before"], change["after"])
                    self._note_step(act, change["path"])
                    kill_point("journal-applied")
        except (EditConflict, EntryExists, EntryNotFound, OutsideUnavailable, PathRefused) as error:
            self._take_back(act)
            if isinstance(error, EntryNotFound):
                raise EditConflict(str(error)) from error
            raise
        if rejected := rejected_by(act):
            self._forget_texts(rejected)
        self._append(_history(act))
        kill_point("journal-recorded")
        self._forget_pending()

    def _take_back(self, act: Mapping[str, Any]) -> None:
        self.store.require_vault()
        steps = self._steps(act)
        self._steps_file.unlink(missing_ok=True)  # After a crash, a rolled-back step must not count as done.
        for change in reversed(act["changes"]):
            path, before, after = change["path"], change["before"], change["after"]
            with suppress(EditConflict, EntryExists, EntryNotFound, OutsideUnavailable, PathRefused):
                if self._is_done(change):
                    self._apply(act, path, after, before)
                elif path in steps and is_outside(path):
                    # The user has edited the list since then: remove our part and keep theirs.
                    now = text_of(self.store, path)
                    rest = without_change(now, before, after)
                    if rest is not None:
                        self._apply(act, path, now, rest)
        for move in reversed(act.get("moves", ())):
            with suppress(EntryExists, EntryNotFound, PathRefused):
                if self._is_moved(act, move):
                    self.store.move_folder(move["to"], move["path"])
        self._forget_pending()

    def _take_back_unwritten(self, act: Mapping[str, Any], error: VaultUnavailable) -> None:
        """Roll back an act of which a step could not be written, for example because the disk is full.

        If this is not possible now, raises a VaultUnavailable that says so; `recover` completes it later.
        """
        try:
            self._take_back(act)
        except (VaultUnavailable, OSError):
            cause = str(error).removesuffix("; nothing was changed")
            raise VaultUnavailable(f"{cause}; the next command or job completes what was begun") from error

    @property
    def _steps_file(self) -> Path:
        return self._folder / "pending.steps"

    def _note_step(self, act: Mapping[str, Any], path: str) -> None:
        """Record that this step is done: its file may be edited before the act is completed."""
        line = json.dumps([act["id"], path]).encode("ascii") + b"\n"
        # Not synced: it only has to survive a killed process. Without it, the texts show which steps are done.
        with suppress(OSError), open(self._steps_file, "ab", opener=open_private) as file:
            file.write(line)

    def _steps(self, act: Mapping[str, Any]) -> frozenset[str]:
        """Return the paths of the steps recorded as done."""
        found = set()
        for line in _lines(self._steps_file):
            with suppress(ValueError, TypeError):
                of, path = parse_json(line)
                if of == act["id"]:
                    found.add(str(path))
        return frozenset(found)

    def _forget_pending(self) -> None:
        self._pending.unlink(missing_ok=True)
        self._steps_file.unlink(missing_ok=True)

    def _is_done(self, change: Mapping[str, Any]) -> bool:
        after: str | None = change["after"]
        return text_of(self.store, change["path"]) == after and change["before"] != after

    def _was_made(self, act: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
        if change["path"] in self._steps(act):
            return True
        with suppress(OutsideUnavailable, PathRefused):
            return self._is_done(change)
        return False

    def _is_moved(self, act: Mapping[str, Any], move: Mapping[str, Any]) -> bool:
        try:
            if not self.store.is_taken(move["to"]):
                return False
            if not self.store.is_taken(move["path"]) or move["to"] in self._steps(act):
                return True
        except PathRefused:  # The folder was replaced by a link out of the vault.
            return False
        # Both exist: an editor that had a note of the old folder open has saved it again.
        inside = (change for change in act["changes"] if change["path"].startswith(move["to"] + "/"))
        return any(text_of(self.store, c["path"]) in (c["before"], c["after"]) for c in inside if c["before"])

    def _apply(self, act: Mapping[str, Any], path: str, before: str | None, after: str | None) -> None:
        expected = None if before is None else hash_of(before)
        if is_outside(path):
            text = None if after is None else Scrubbed.trusted(after, reason="the user's own file and scrubbed parts")
            outside_write(self.store, path, text, expected, Consent(act["consent"]) if act.get("consent") else None)
        elif after is not None:
            text = Scrubbed.trusted(after, reason="it was scrubbed, or in the vault, before it was journalled")
            try:
                self.store.write_text(path, text, expected)
            except EntryExists:
                # Another device with the same vault made the same change: a rollback would undo it there.
                if text_of(self.store, path) != after:
                    raise
        elif expected is not None:
            with suppress(EntryNotFound):  # As above: another device has removed it.
                self.store.remove(path, expected)

    def _read_pending(self) -> dict[str, Any] | None:
        try:
            act = parse_json(self._pending.read_bytes())
            _done(_history(act))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            os.replace(self._pending, self._folder / DAMAGED)
            return None
        return dict(act)

    def _append(self, act: Mapping[str, Any]) -> None:
        file = self.files[-1]
        with self._writing():
            if file.exists() and file.stat().st_size > self._max_bytes:
                os.replace(file, self.files[0])
            # Complete a line that a crash cut short.
            start = b"" if _ends_whole(file) else b"\n"
            append_synced(file, start + json.dumps(act).encode("ascii") + b"\n")


def _history(act: Mapping[str, Any]) -> dict[str, Any]:
    """Return the journal line of a completed act: of new texts only the hashes, as the texts are in the vault."""
    changes = [
        {
            "path": change["path"],
            "before": change["before"],
            "after_hash": None if change["after"] is None else hash_of(change["after"]),
        }
        for change in act["changes"]
    ]
    return without_rejected(act, {**act, "changes": changes})


def _without(
    act: dict[str, Any], paths: Collection[str], names: Collection[str], *, texts_only: bool = False
) -> dict[str, Any] | None:
    """Return the act without these files, with `texts_only` only without those whose earlier text it keeps; None if no
    change remains."""
    changes = act["changes"]
    kept = [each for each in changes if each["path"] not in paths or (texts_only and each["before"] is None)]
    if len(kept) == len(changes):
        return act
    if not kept:
        return None
    what = "a change of several notes" if any(name in act["what"] for name in names) else act["what"]
    return {**act, "changes": kept, "what": what}


def _done(line: Mapping[str, Any]) -> Act:
    return Act(
        id=str(line["id"]),
        run=str(line["run"]),
        actor=str(line["actor"]),
        what=str(line["what"]),
        session=str(line["session"]),
        at=str(line["at"]),
        changes=tuple(Recorded(str(c["path"]), c["before"], c["after_hash"]) for c in line["changes"]),
        undoes=tuple(line["undoes"]),
        moves=tuple(FolderMove(str(m["path"]), str(m["to"])) for m in line.get("moves", ())),
    )


def _lines(file: Path) -> Iterator[bytes]:
    with suppress(FileNotFoundError), file.open("rb") as lines:
        yield from lines


def _ends_whole(file: Path) -> bool:
    try:
        with file.open("rb") as data:
            data.seek(-1, os.SEEK_END)
            return data.read(1) == b"\n"
    except OSError:  # absent or empty
        return True
