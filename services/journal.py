"""The journal of changes to the vault: several files change as one, and what was changed can be taken back.

A change of several files is written down in `pending.json` first, then done file by file (`pending.steps` says which
are done), then added to `changes.jsonl`. Whoever comes next after a crash ends it: forwards when something of it was
done, and back when a person has edited one of the files that were still to be changed. Either way the vault is in one
of the two whole states.

The journal is device-local and may be deleted: decisions are in the notes. It is what `memory undo` reads.
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

from ..runtime.atomic_file import append_synced, replace_file
from ..runtime.errors import (
    EditConflict,
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    OutsideUnavailable,
    PathRefused,
    VaultUnavailable,
)
from ..runtime.killpoint import kill_point
from ..runtime.layout import StatePaths, make_private_folder, open_private
from ..vault.boundary import Consent
from ..vault.entry import Entry, content_hash
from ..vault.note_text import decode_note
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .boundary import is_outside, outside_write, require_consent, text_outside, without_change
from .rejected_texts import rejected_by, with_restored, without_rejected
from .reverse_lines import lines_from_end

log = logging.getLogger(__name__)

DAMAGED = "pending.damaged.json"
MAX_JOURNAL_BYTES = 16 * 1024 * 1024
"""A longer journal becomes `changes.1.jsonl`, and the one before that goes."""

JournalState = tuple[tuple[int, int, int] | None, ...]
"""Of each file of the journal its inode, size and time of change in nanoseconds; None for one that is not there. The
same state, the same acts: a line is only ever added, and a full file gives way to a new one."""

Actor = Literal[
    "reflection",
    "triage",
    "adaptation",
    "review",
    "evolve",
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
"""What `memory undo` takes back: the program's own acts, what agents proposed, and many files at once on one word of
the user. The others are single decisions of the user, or of the agent that was told to note something."""

BACKFILL = "backfill"
"""How the run of a backfill begins: one for all sessions of one `memory reflect corpus`."""


@dataclass(frozen=True)
class Change:
    """One file: its text before (None: it did not exist) and after (None: it goes).

    An absolute path is outside the vault: such a change needs the user's consent.
    """

    path: str
    before: str | None
    after: Scrubbed | None


@dataclass(frozen=True)
class FolderMove:
    """A folder with all that lies in it gets another name, before any file of the act is changed."""

    path: str
    to: str


@dataclass(frozen=True)
class Recorded:
    """One file of an act that is done."""

    path: str
    before: str | None
    """The text before; None: it did not exist."""
    after_hash: str | None
    """`content_hash` afterwards; None: it was removed."""


@dataclass(frozen=True)
class Act:
    """Changes that were made together. `run` groups the acts of one job or command."""

    id: str
    run: str
    actor: str
    what: str
    session: str
    at: str
    """UTC, ISO 8601 with Z."""
    changes: tuple[Recorded, ...]
    undoes: tuple[str, ...] = ()
    """Ids of acts that this one takes back."""
    moves: tuple[FolderMove, ...] = ()


def rewritten(entry: Entry, text: Scrubbed, target: str | None = None) -> list[Change]:
    """The changes that give an entry's note another text, and with `target` another place."""
    if target in (None, entry.path):
        return [Change(entry.path, entry.text, text)]
    return [Change(target, None, text), Change(entry.path, entry.text, None)]


def hash_of(text: str) -> str:
    """The `content_hash` of the file that holds this text."""
    return content_hash(text.encode("utf-8", "surrogateescape"))


def text_of(store: VaultStore, path: str) -> str | None:
    """The file's text, every byte of it; None when there is none. Raises PathRefused, VaultUnavailable."""
    if is_outside(path):
        return text_outside(store, path)
    try:
        return decode_note(store.read_bytes(path))
    except EntryNotFound:
        return None


class Journal:
    """Makes changes and remembers them. All under the vault's lock."""

    def __init__(
        self,
        state: StatePaths,
        store: VaultStore,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        max_bytes: int = MAX_JOURNAL_BYTES,
    ) -> None:
        self._folder = Path(state.journal)
        self._pending = Path(state.pending_change)
        self._store = store
        self._now = now
        self._max_bytes = max_bytes

    @property
    def store(self) -> VaultStore:
        """The vault it writes to."""
        return self._store

    @property
    def files(self) -> tuple[Path, ...]:
        """The journal's files, oldest first; they may be absent."""
        return self._folder / "changes.1.jsonl", self._folder / "changes.jsonl"

    @property
    def leftovers(self) -> tuple[Path, ...]:
        """What killed writers left beside them, and a change that could not be read: nobody needs these any more.

        Under the vault's lock: else one may be a file that is just being written."""
        return *sorted(self._folder.glob(".*")), *self._folder.glob(DAMAGED)

    @property
    def is_interrupted(self) -> bool:
        """Whether there is a change for `recover` to end."""
        return self._pending.exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the vault's lock over read-check-commit; what a crash interrupted is ended first. Re-entrant.

        Raises PathRefused, VaultUnavailable.
        """
        with self._store.lock():
            self.recover()
            yield

    def stamp(self) -> str:
        """Now, as acts and entries write it."""
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_run(self, name: str) -> str:
        """A name for the acts of one job or command."""
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

        Raises EditConflict, EntryExists or EntryNotFound when a file or folder is not as it is said to be,
        BoundaryRefused for a change outside without consent, OutsideUnavailable when such a file cannot be written
        (nothing is changed then), PathRefused, VaultUnavailable.
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
                self._expect_folder(move)
            self._write_pending(act)
            kill_point("journal-pending")
            try:
                self._finish(act)
            except VaultUnavailable as error:
                self._take_back_unwritten(act, error)
                raise
        return self._read(_history(act))

    def _read(self, line: Mapping[str, Any]) -> Act:
        return _done(with_restored(line, lambda path: text_of(self._store, path)))

    def recover(self) -> bool:
        """End what a crash interrupted; whether there was anything. Raises VaultUnavailable, PathRefused."""
        if not self._pending.exists():
            return False
        with self._store.lock():
            act = self._read_pending()
            if act is None:
                return False
            self._store.require_vault()
            if any(done.id == act["id"] for done in self.acts()):
                # All of it was done. What a person has changed since then is none of its business.
                self._forget_pending()
                return True
            moved = any(self._is_moved(act, move) for move in act.get("moves", ()))
            if not moved and not any(self._was_made(act, change) for change in act["changes"]):
                self._forget_pending()
                return True
            log.warning("a change that was interrupted is ended: %s", act["what"])
            try:
                self._finish(act)
            except (EditConflict, EntryExists):
                pass
            except (OutsideUnavailable, PathRefused) as error:
                # It is taken back. No file that cannot be written may keep all later changes from being made.
                log.warning("it was taken back: %s", error)
        return True

    def note_renewal(self, path: str, old: str, new: str) -> None:
        """Put down, before it is done, that a file's text of hash `old` is replaced by one of hash `new` without an
        act, as `memory vault scrub` does. Raises VaultUnavailable when that cannot be written."""
        line = json.dumps([path, old, new]).encode("ascii") + b"\n"
        try:
            make_private_folder(str(self._folder))
            append_synced(self._renewals, line)
        except OSError as error:
            raise VaultUnavailable(f"the journal {self._folder} cannot be written: {error.strerror}") from error

    def renew_hashes(self) -> None:
        """Let the acts know the texts of `note_renewal`, also those of a process that was killed meanwhile: else its
        notes would count as edited by the user. Raises VaultUnavailable."""
        if not self._renewals.exists():
            return
        with self._store.lock():
            self._store.require_vault()
            renewed: dict[str, str] = {}
            for line in _lines(self._renewals):
                with suppress(ValueError, TypeError, PathRefused):
                    path, old, new = json.loads(line)
                    if not self._holds(path, old):  # Else it was not done any more.
                        renewed[old] = new
            try:
                for file in self.files:
                    lines = list(_lines(file))
                    after = [_with_hashes(line, renewed) for line in lines]
                    if after != lines:
                        replace_file(file, b"".join(after))
                self._renewals.unlink(missing_ok=True)
            except OSError as error:
                raise VaultUnavailable(f"the journal {self._folder} cannot be written: {error.strerror}") from error

    def forget(self, paths: Collection[str]) -> frozenset[str]:
        """Leave nothing of these files, which are gone, in the journal: neither texts nor names. Returns their paths
        and those they had before the program moved them. Acts of which nothing is left go, and cannot be taken back.

        Raises VaultUnavailable.
        """
        with self._store.lock():
            acts = self.acts()
            gone = set(paths)
            for act in reversed(acts):  # Where it came from is known by the act that moved it.
                touched = {change.path for change in act.changes}
                if touched & gone:
                    gone |= {path for path in touched if not is_outside(path) and not self._store.is_taken(path)}
            names = {PurePosixPath(path).stem for path in gone}
            try:
                for file in self.files:
                    lines = list(_lines(file))
                    after = [kept for line in lines if (kept := _without(line, gone, names)) is not None]
                    if after != lines:
                        replace_file(file, b"".join(after))
            except OSError as error:
                raise VaultUnavailable(f"the journal {self._folder} cannot be written: {error.strerror}") from error
        return frozenset(gone)

    def _forget_texts(self, paths: Collection[str]) -> None:
        """Drop what earlier acts made of these notes, where a text of them is kept for it: the user has said no."""
        for file in self.files:
            lines = list(_lines(file))
            after = [kept for line in lines if (kept := _without(line, paths, (), texts_only=True)) is not None]
            if after != lines:
                try:
                    replace_file(file, b"".join(after))
                except OSError as error:
                    log.warning("the journal keeps the text of a note that was dismissed: %s", error)

    def _holds(self, path: str, expected: str) -> bool:
        try:
            text = text_of(self._store, path)
        except (EntryInvalid, VaultUnavailable):  # One note that cannot be read must not keep all acts from being read.
            self._store.require_vault()
            return False
        return text is not None and hash_of(text) == expected

    def state_of_files(self) -> JournalState:
        """Says by being the same that no act came since."""
        return tuple(_state_of(file) for file in self.files)

    def acts(self) -> list[Act]:
        """All that is remembered, oldest first. Lines that cannot be read are passed over. Raises VaultUnavailable."""
        self.renew_hashes()
        found: dict[str, Act] = {}
        for file in self.files:
            for line in _lines(file):
                with suppress(ValueError, KeyError, TypeError):
                    act = self._read(json.loads(line))
                    found.setdefault(act.id, act)
        return list(found.values())

    def acts_of(self, session: str) -> list[Act]:
        """Those that were made of one session, oldest first."""
        # Most lines are passed over unread: they hold whole notes.
        mark = _member("session", session)
        found: dict[str, Act] = {}
        for file in self.files:
            for line in _lines(file):
                if mark in line:
                    with suppress(ValueError, KeyError, TypeError):
                        act = self._read(json.loads(line))
                        if act.session == session:
                            found.setdefault(act.id, act)
        return list(found.values())

    def newest(self, is_wanted: Callable[[bytes], bool] = lambda line: True) -> Iterator[Act]:
        """All that is remembered, newest first, read only as far as it is asked for.

        `is_wanted` looks at a line before it is parsed, which costs fifty times as much: lines hold whole notes. It
        may let through too many.
        """
        self.renew_hashes()
        seen: set[str] = set()
        for file in reversed(self.files):
            for line in lines_from_end(file):
                if is_wanted(line):
                    with suppress(ValueError, KeyError, TypeError):
                        act = self._read(json.loads(line))
                        if act.id not in seen:
                            seen.add(act.id)
                            yield act

    def newest_of(self, paths: Collection[str]) -> Iterator[Act]:
        """Those that may have changed or moved one of `paths`, newest first; `paths` may grow meanwhile."""
        marks: dict[str, bytes] = {}

        def is_wanted(line: bytes) -> bool:
            marks.update({path: _member("path", path) for path in paths if path not in marks})
            return _MOVES in line or any(mark in line for mark in marks.values())

        return self.newest(is_wanted)

    def newest_decisions(self) -> Iterator[Act]:
        """Those of reviews, and those that take any back; newest first."""
        mark = _member("actor", "review")
        return self.newest(lambda line: mark in line or _UNDOES_NONE not in line)

    # Steps

    @property
    def _renewals(self) -> Path:
        return self._folder / "renewals.jsonl"

    def _expect(self, change: Change, moves: Sequence[FolderMove], consent: Consent | None) -> None:
        if is_outside(change.path):
            require_consent(change.path, consent)
        path = change.path
        for move in moves:
            if path.startswith(move.to + "/"):
                path = move.path + path[len(move.to) :]
        found = text_of(self._store, path)
        if found == change.before:
            return
        if change.before is None:
            raise EntryExists(f"there is already an entry {change.path}")
        raise EditConflict(f"{change.path} was changed since it was read; nothing was written: read it again")

    def _expect_folder(self, move: FolderMove) -> None:
        if not self._store.is_taken(move.path):
            raise EntryNotFound(f"there is no folder {move.path}")
        if self._store.is_taken(move.to):
            raise EntryExists(f"there is already a folder {move.to}")

    def _finish(self, act: Mapping[str, Any]) -> None:
        """Do what is not done yet, then remember it; when a person was faster, undo what was done."""
        try:
            for move in act.get("moves", ()):
                if not self._is_moved(act, move):
                    self._store.move_folder(move["path"], move["to"])
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
        self._store.require_vault()
        steps = self._steps(act)
        self._steps_file.unlink(missing_ok=True)  # what is taken back must not count as done after a crash
        for change in reversed(act["changes"]):
            path, before, after = change["path"], change["before"], change["after"]
            with suppress(EditConflict, EntryExists, EntryNotFound, OutsideUnavailable, PathRefused):
                if self._is_done(change):
                    self._apply(act, path, after, before)
                elif path in steps and is_outside(path):
                    # The user has written in the list since then: ours goes, theirs stays.
                    now = text_of(self._store, path)
                    rest = without_change(now, before, after)
                    if rest is not None:
                        self._apply(act, path, now, rest)
        for move in reversed(act.get("moves", ())):
            with suppress(EntryExists, EntryNotFound, PathRefused):
                if self._is_moved(act, move):
                    self._store.move_folder(move["to"], move["path"])
        self._forget_pending()

    def _take_back_unwritten(self, act: Mapping[str, Any], error: VaultUnavailable) -> None:
        """Take back an act of which a step could not be written, as on a full disk.

        Raises VaultUnavailable that says so when this cannot be done now: `recover` ends it then.
        """
        try:
            self._take_back(act)
        except (VaultUnavailable, OSError):
            cause = str(error).removesuffix("; nothing was changed")
            raise VaultUnavailable(f"{cause}; what was begun is ended by the next command or job") from error

    @property
    def _steps_file(self) -> Path:
        return self._folder / "pending.steps"

    def _note_step(self, act: Mapping[str, Any], path: str) -> None:
        """Remember that this step was done: its file may be edited before the act is ended."""
        line = json.dumps([act["id"], path]).encode("ascii") + b"\n"
        # Not synced: it is for a killed process. Without it, as on a full disk, the texts tell what was done.
        with suppress(OSError), open(self._steps_file, "ab", opener=open_private) as file:
            file.write(line)

    def _steps(self, act: Mapping[str, Any]) -> frozenset[str]:
        """The paths of the act's steps that are known to be done."""
        found = set()
        for line in _lines(self._steps_file):
            with suppress(ValueError, TypeError):
                of, path = json.loads(line)
                if of == act["id"]:
                    found.add(str(path))
        return frozenset(found)

    def _forget_pending(self) -> None:
        self._pending.unlink(missing_ok=True)
        self._steps_file.unlink(missing_ok=True)

    def _is_done(self, change: Mapping[str, Any]) -> bool:
        after: str | None = change["after"]
        return text_of(self._store, change["path"]) == after and change["before"] != after

    def _was_made(self, act: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
        if change["path"] in self._steps(act):
            return True
        with suppress(OutsideUnavailable, PathRefused):
            return self._is_done(change)
        return False

    def _is_moved(self, act: Mapping[str, Any], move: Mapping[str, Any]) -> bool:
        try:
            if not self._store.is_taken(move["to"]):
                return False
            if not self._store.is_taken(move["path"]) or move["to"] in self._steps(act):
                return True
        except PathRefused:  # A link out of the vault is in its place now.
            return False
        # Both are there: an editor that had a note of the old folder open has saved it once more.
        inside = (change for change in act["changes"] if change["path"].startswith(move["to"] + "/"))
        return any(text_of(self._store, c["path"]) in (c["before"], c["after"]) for c in inside if c["before"])

    def _apply(self, act: Mapping[str, Any], path: str, before: str | None, after: str | None) -> None:
        expected = None if before is None else hash_of(before)
        if is_outside(path):
            text = None if after is None else Scrubbed.trusted(after, reason="the user's own file and scrubbed parts")
            outside_write(self._store, path, text, expected, Consent(act["consent"]) if act.get("consent") else None)
        elif after is not None:
            text = Scrubbed.trusted(after, reason="it was scrubbed, or in the vault, before it was journalled")
            try:
                self._store.write_text(path, text, expected, keep_line_ends=True)
            except EntryExists:
                # Another machine with the same vault does the same: to take it back would take it from that one.
                if text_of(self._store, path) != after:
                    raise
        elif expected is not None:
            with suppress(EntryNotFound):  # As above: it is gone, as it should be.
                self._store.remove(path, expected)

    def _write_pending(self, act: Mapping[str, Any]) -> None:
        data = json.dumps(act).encode("ascii")
        try:
            make_private_folder(str(self._folder))
            replace_file(self._pending, data)
        except OSError as error:
            raise VaultUnavailable(f"the journal {self._folder} cannot be written: {error.strerror}") from error

    def _read_pending(self) -> dict[str, Any] | None:
        try:
            act = json.loads(self._pending.read_bytes())
            _done(_history(act))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            os.replace(self._pending, self._folder / DAMAGED)
            return None
        return dict(act)

    def _append(self, act: Mapping[str, Any]) -> None:
        file = self.files[-1]
        try:
            if file.exists() and file.stat().st_size > self._max_bytes:
                os.replace(file, self.files[0])
            # A line that a crash cut short is ended first.
            start = b"" if _ends_whole(file) else b"\n"
            append_synced(file, start + json.dumps(act).encode("ascii") + b"\n")
        except OSError as error:
            raise VaultUnavailable(f"the journal {file} cannot be written: {error.strerror}") from error


def _member(name: str, value: object) -> bytes:
    """As it stands in a line. Never in the text of a note there, whose quotes are escaped."""
    return json.dumps({name: value})[1:-1].encode("ascii")


_UNDOES_NONE = _member("undoes", [])
_MOVES = b'"moves": ['


def _history(act: Mapping[str, Any]) -> dict[str, Any]:
    """The line of an act that is done: of the new texts only the hashes, they are in the vault."""
    changes = [
        {
            "path": change["path"],
            "before": change["before"],
            "after_hash": None if change["after"] is None else hash_of(change["after"]),
        }
        for change in act["changes"]
    ]
    return without_rejected(act, {**act, "changes": changes})


def _without(line: bytes, paths: Collection[str], names: Collection[str], *, texts_only: bool = False) -> bytes | None:
    """The line of an act without these files, with `texts_only` without those of which it keeps a text; None when
    nothing is left of it."""
    try:
        act = json.loads(line)
        kept = [
            change
            for change in act["changes"]
            if change["path"] not in paths or (texts_only and change["before"] is None)
        ]
    except (ValueError, KeyError, TypeError):
        return line
    if len(kept) == len(act["changes"]):
        return line
    if not kept:
        return None
    act["changes"] = kept
    if any(name in act["what"] for name in names):
        act["what"] = "a change of several notes"
    return json.dumps(act).encode("ascii") + b"\n"


def _with_hashes(line: bytes, renewed: Mapping[str, str]) -> bytes:
    """The line of an act with new hashes of its files afterwards; any other as it is."""
    try:
        act = json.loads(line)
        found = [change for change in act["changes"] if change["after_hash"] in renewed]
    except (ValueError, KeyError, TypeError):
        return line
    for change in found:
        change["after_hash"] = renewed[change["after_hash"]]
    return json.dumps(act).encode("ascii") + b"\n" if found else line


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


def _state_of(file: Path) -> tuple[int, int, int] | None:
    try:
        state = os.stat(file)
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _ends_whole(file: Path) -> bool:
    try:
        with file.open("rb") as data:
            data.seek(-1, os.SEEK_END)
            return data.read(1) == b"\n"
    except OSError:  # absent or empty
        return True
