"""Undo: restore files that the program wrote and nobody has changed since, byte for byte, and name the others.

The journal records what each act changed. Without it nothing can be undone; notes with a session's evidence are only
named.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Literal

from ..pipelines.research import is_as_written
from ..runtime.errors import MemoryVaultError, UsageError
from ..vault.boundary import Consent
from ..vault.entry import RESEARCH_KIND, Entry, hash_of, parse_entry
from ..vault.pending import is_idea_path
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import counted
from .boundary import is_outside
from .ideas.ledger import is_asking, taken_back
from .ideas.research import without_research
from .journal import AUTOMATIC, Act, Change, Journal, Recorded, text_of
from .tombstones import Evidence, evidence_in, record_removal

Step = Literal["remove", "restore", "leave", "gone"]
"""What happens to a file; gone: nothing, because it no longer exists."""
LIVING = frozenset({"active", "pending", "inbox", "incubating"})
SESSION_PREFIX_CHARACTERS = 6
"""The shortest accepted prefix of a session id."""
NAMED = 5
"""How many sessions with the same prefix an error lists."""


class Why(StrEnum):
    """The reason why a file is undone or kept, as shown to the user."""

    WRITTEN = "it was written by this run"
    SECTION = "the section was written by this run"
    LOOKED_UP = "it was looked up about the idea"
    EDITED = "it was edited since: it stays"
    SECTION_EDITED = "the section was edited or is gone: it stays"
    OWN_FILE = "a file of yours lies beside it: it stays"
    DECIDED = "you have decided on it since: it stays"
    CHANGED = "a later run changed or moved it: it stays"
    HOLDS_MORE = "it holds more than this session said, or the journal does not know it: it stays"
    GONE = "you moved, deleted or decided on it"


@dataclass(frozen=True)
class Selector:
    """The acts to undo: of the last run, of a given run, of a session, or since a time (exactly one of these). `actor`
    selects only its acts.

    The last run is the last one of which anything can be undone.
    """

    last: bool = False
    run: str | None = None
    session: str | None = None
    since: datetime | None = None
    actor: str | None = None

    def of(self, acts: Sequence[Act]) -> list[Act]:
        """Return those of `acts` that are selected and not undone; of the last run: those of all runs."""
        undone = {id_ for act in acts for id_ in act.undoes}
        named = [act for act in acts if self.run in (None, act.run) and self.session in (None, act.session)]
        recent = [act for act in named if self.since is None or datetime.fromisoformat(act.at) >= self.since]
        return [act for act in recent if act.id not in undone and act.actor in self.actors]

    @property
    def actors(self) -> frozenset[str]:
        """The actors whose acts may be undone."""
        return AUTOMATIC if self.actor is None else AUTOMATIC & {self.actor}


@dataclass(frozen=True)
class UndoStep:
    """What happens to one file."""

    path: str
    step: Step
    why: Why


@dataclass
class UndoPlan:
    """What an undo would do."""

    steps: list[UndoStep] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    undoes: list[str] = field(default_factory=list)
    left: int = 0
    """Notes that are kept, because they are no longer as the program wrote them."""
    run: str = ""
    """The journal's name of the last run; "" if the user did not select the last run."""
    at: str = ""
    """Time of its last act: UTC, ISO 8601 with Z."""
    is_earlier: bool = False
    """Whether later runs are left: all that they wrote was decided on, moved or edited since."""
    sessions: int = 0
    """The number of sessions concerned."""
    lost_of: frozenset[str] = frozenset()
    """Ids of the sessions whose evidence is lost by carrying it out."""


class Undo:
    """Plans an undo and carries it out."""

    def __init__(self, store: VaultStore, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    def plan(self, selector: Selector) -> UndoPlan:
        """Return what an undo would do now. Raises VaultUnavailable."""
        self._store.require_vault()
        acts = self._journal.acts()
        past = _Past(self._store, acts)
        if not selector.last:
            return self._planned(selector, selector.of(acts)[::-1], past)
        runs: dict[str, list[Act]] = {}
        for act in reversed(selector.of(acts)):
            runs.setdefault(act.run, []).append(act)
        last: UndoPlan | None = None
        is_earlier = False
        for run, newest_first in runs.items():
            plan = self._planned(Selector(run=run, actor=selector.actor), newest_first, past)
            if plan.changes:
                plan.is_earlier = is_earlier
                return plan
            last = last or plan
            is_earlier = is_earlier or bool(plan.steps)
        return last or UndoPlan()

    def _planned(self, selector: Selector, newest_first: Sequence[Act], past: _Past) -> UndoPlan:
        work = _PlanBuilder(self._store, past)
        for act in newest_first:
            work.take_back(act)
        if selector.session is not None and selector.actor is None:
            work.name_the_rest(selector.session)
        plan = work.plan()
        plan.sessions = len({act.session for act in newest_first if act.session})
        if selector.run is not None and newest_first:
            plan.run, plan.at = selector.run, newest_first[0].at
        return plan

    def session_called(self, name: str, actor: str | None = None) -> str:
        """Return the session with this id or prefix, of those of which anything was written. Sessions that were undone
        count too, so that the same prefix never means a different session. Raises MemoryVaultError if none matches,
        UsageError if several match or the prefix is too short."""
        wanted = Selector(actor=actor).actors
        sessions = {act.session for act in self._journal.acts() if act.session and act.actor in wanted}
        if name in sessions:
            return name
        if actor is None:
            living = (entry for entry in self._store.readable(self._store.walk()) if _is_mined(entry))
            sessions |= {source.session for entry in living for source in entry.sources if source.session}
        begun = sorted(session for session in sessions if session.startswith(name))
        if name in begun:
            return name
        if len(name) < SESSION_PREFIX_CHARACTERS:
            raise UsageError(
                f"no session is called {name!r}: give its id, or at least the first {SESSION_PREFIX_CHARACTERS} "
                "characters of it"
            )
        if len(begun) > 1:
            more = f" and {len(begun) - NAMED} more" if len(begun) > NAMED else ""
            raise UsageError(f"{name!r} may be {', '.join(begun[:NAMED])}{more}: give more of the id")
        if not begun:
            raise MemoryVaultError(f"there is nothing to take back of a session {name!r}")
        return begun[0]

    def carry_out(self, selector: Selector) -> UndoPlan:
        """Plan again under the vault's lock, and carry it out as one act.

        Raises BoundaryRefused, EditConflict, EntryInvalid, PathRefused, VaultUnavailable.
        """
        with self._journal.locked():
            plan = self.plan(selector)
            if plan.changes:
                lost = _evidence_lost(plan.changes)
                plan.lost_of = frozenset(session for session, _ in lost)
                self._journal.commit(
                    [*record_removal(self._store, lost), *plan.changes],
                    run=self._journal.new_run("undo"),
                    actor="undo",
                    what=f"took back {counted(len(plan.changes), 'change')}",
                    undoes=plan.undoes,
                    consent=Consent.REQUESTED,
                )
        return plan


def _evidence_lost(changes: Sequence[Change]) -> set[Evidence]:
    lost: set[Evidence] = set()
    kept: set[Evidence] = set()
    for change in changes:
        if not is_outside(change.path):
            lost |= evidence_in(change.path, change.before) if change.before is not None else set()
            kept |= evidence_in(change.path, str(change.after)) if change.after is not None else set()
    return lost - kept


class _Past:
    """The acts by file, and the files' current texts, read once for all runs that are tried."""

    def __init__(self, store: VaultStore, acts: Sequence[Act]) -> None:
        self._store = store
        self._of_path: dict[str, list[tuple[Act, Recorded]]] = {}
        for act in acts:
            for change in act.changes:
                self._of_path.setdefault(change.path, []).append((act, change))
        self._disk: dict[str, str | None] = {}

    def writer_after(self, act: Act, path: str, hashes: Collection[str | None]) -> Act | None:
        """Return the latest act after `act` that left the file with one of these hashes; None if there is none.

        Undo acts do not count, because they restore what another act wrote.
        """
        later = takewhile(lambda made: made[0].id != act.id, reversed(self._of_path[path]))
        return next((each for each, change in later if change.after_hash in hashes and each.actor != "undo"), None)

    def is_decided(self, path: str) -> bool:
        """Whether a decision of the user wrote the file last."""
        writers = [act for act, _ in self._of_path.get(path, ()) if act.actor != "undo"]
        return bool(writers) and writers[-1].actor not in AUTOMATIC and not is_asking(writers[-1])

    def on_disk(self, path: str) -> str | None:
        """Return the file's current text; None if there is no file."""
        if path not in self._disk:
            self._disk[path] = text_of(self._store, path)
        return self._disk[path]


class _PlanBuilder:
    """The state of the vault while acts are undone, newest first."""

    def __init__(self, store: VaultStore, past: _Past) -> None:
        self._store = store
        self._past = past
        self._will_be: dict[str, str | None] = {}
        self._steps: dict[str, UndoStep] = {}
        self._undoes: list[str] = []

    def take_back(self, act: Act) -> None:
        """Undo all files of the act or none; in a file outside the vault, only what the act added."""
        inside = [change for change in act.changes if not is_outside(change.path)]
        faults = {change.path: why for change in inside if (why := self._fault(act, change)) is not None}
        for path, why in faults.items():
            self._leave(path, why)
        if faults:
            return
        for change in reversed(inside):
            self._set(change.path, change.before, Why.WRITTEN)
            if change.before is None and is_idea_path(change.path):
                self._take_back_research(change.path)
        for change in act.changes:
            if is_outside(change.path):
                self._take_back_outside(act, change)
        self._undoes.append(act.id)

    def name_the_rest(self, session: str) -> None:
        """Name every note that holds evidence of the session and is not undone with it."""
        for path, data in self._store.contents():
            if path not in self._steps and session.encode() in data:  # Parsing all notes would take seconds.
                entry = parse_entry(path, data)
                if _is_mined(entry) and any(source.session == session for source in entry.sources):
                    self._leave(path, Why.DECIDED if self._past.is_decided(path) else Why.HOLDS_MORE)

    def _fault(self, act: Act, change: Recorded) -> Why | None:
        """Return why the file cannot be restored; None if it is unchanged."""
        now = self._now(change.path)
        hashes = {None if now is None else hash_of(now)}
        is_idea = now is not None and is_idea_path(change.path)
        if is_idea:  # Research adds to an idea's note without an act.
            hashes.add(hash_of(without_research(self._store, change.path, now or "")))
        if change.after_hash in hashes:
            return Why.OWN_FILE if is_idea and change.before is None and self._has_own_file(change.path) else None
        writer = self._past.writer_after(act, change.path, hashes)
        if writer is not None and (writer.actor in AUTOMATIC or is_asking(writer)):
            return Why.CHANGED
        if now is None:
            return Why.GONE
        return Why.EDITED if writer is None else Why.DECIDED

    def _has_own_file(self, path: str) -> bool:
        """Whether the idea's folder has a file or folder of the user, which would be left alone there."""
        folder = path.rpartition("/")[0]
        try:
            names = os.listdir(self._store.vault / folder)
        except FileNotFoundError:  # The folder was moved; another step of this undo moves it back.
            return False
        ours = {path, *(note.path for note in self._beside(folder))}
        return any(not name.startswith(".") and f"{folder}/{name}" not in ours for name in names)

    def _beside(self, folder: str) -> Iterator[Entry]:
        """Return the research notes in this idea's folder."""
        notes = self._store.readable([each for each in self._store.walk() if each.startswith(f"{folder}/")])
        return (note for note in notes if note.kind == RESEARCH_KIND)

    def _take_back_research(self, path: str) -> None:
        for note in self._beside(path.rpartition("/")[0]):
            if is_as_written(note):
                self._set(note.path, None, Why.LOOKED_UP)
            else:
                self._leave(note.path, Why.EDITED)

    def _take_back_outside(self, act: Act, change: Recorded) -> None:
        """Remove only the section, and only if it is as it was added: the user may have edited the file since."""
        now = self._now(change.path)
        if now is not None and hash_of(now) == change.after_hash:
            self._set(change.path, change.before, Why.WRITTEN)
        elif (text := taken_back(self._store, act, now)) is not None:
            self._set(change.path, text, Why.SECTION)
        else:
            self._leave(change.path, Why.SECTION_EDITED)

    def _now(self, path: str) -> str | None:
        return self._will_be[path] if path in self._will_be else self._past.on_disk(path)

    def _set(self, path: str, text: str | None, why: Why) -> None:
        self._will_be[path] = text
        self._steps[path] = UndoStep(path, "remove" if text is None else "restore", why)

    def _leave(self, path: str, why: Why) -> None:
        step: Step = "leave" if self._now(path) is not None else "gone"
        if path in self._steps:  # A later act restores it as far as possible.
            step = self._steps[path].step
        self._steps[path] = UndoStep(path, step, why)

    def plan(self) -> UndoPlan:
        """Return the resulting plan."""
        plan = UndoPlan(undoes=self._undoes)
        for path, text in self._will_be.items():
            before = self._past.on_disk(path)
            if text != before:
                after = None if text is None else Scrubbed.trusted(text, reason="it was in the vault before")
                plan.changes.append(Change(path, before, after))
        changed = {change.path for change in plan.changes}
        steps = sorted(self._steps.items())
        plan.steps = [step for path, step in steps if step.step in ("leave", "gone") or path in changed]
        plan.left = sum(step.step == "leave" for step in plan.steps)
        return plan


def _is_mined(entry: Entry) -> bool:
    return entry.fingerprint is not None and entry.effective_status in LIVING
