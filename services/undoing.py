"""Undo: take back what the program wrote by itself, and nothing that a person has touched since.

The journal says what each act changed. Where it is gone, the entries' own evidence says which session they
come from; whether somebody edited them can't be told then, so they go only when the user says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Literal, NamedTuple

from ..pipelines.research import is_as_written
from ..runtime.errors import EntryInvalid, MemoryVaultError, UsageError
from ..vault.boundary import Consent
from ..vault.entry import RESEARCH_KIND, Entry, parse_entry
from ..vault.pending import is_idea_path, question_path
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import counted
from .boundary import is_outside
from .ideas.ledger import is_asking, slug_of, taken_back
from .ideas.research_fields import without_research
from .journal import AUTOMATIC, Act, Change, Journal, Recorded, hash_of
from .note_history import Location, NoteHistory
from .tombstones import Evidence, TakenBack, evidence_in

Step = Literal["remove", "restore", "weaken", "leave", "gone"]
"""What happens to a file; gone: nothing, it is not there any more."""
LIVING = frozenset({"active", "pending", "inbox", "incubating"})
SESSION_PREFIX_CHARACTERS = 6
"""So much of a session's id names it, where no other begins the same."""
WRITTEN = "it was written by this run"
"""Why of most steps."""
EDITED = "it was edited since"
UNTOLD = "the journal has no record of it, so whether you edited it can't be told"
DECIDED = "you have decided on it since: it stays"
GONE = "you moved, deleted or decided on it"
UNDONE = "something of it was taken back since: it stays"
MOVED = "it was moved there since"
ADDED = "later sessions added to it"
ONLY_THIS = ": only this one's evidence goes"
NAMED = 5
"""So many sessions that begin the same are named."""


class FaultKind(Enum):
    """What an undo can do about a file that is not as the act left it."""

    EDITED = auto()
    """Take it back where the user includes edited notes."""
    STRENGTHENED = auto()
    """Take out this session's evidence: only the program has written it since."""
    UNDONE = auto()
    """Look for the evidence where it went."""
    DECIDED = auto()
    """Leave it."""


class Fault(NamedTuple):
    """Why a file can't simply be put back; `why` is what the user is told."""

    kind: FaultKind
    why: str


@dataclass(frozen=True)
class Selector:
    """Which acts: the last run's, those of a run, one session's, or all since a time. Exactly one of these; `actor`:
    only its acts.

    The last run is the last one of which anything can be taken back.
    """

    last: bool = False
    run: str | None = None
    session: str | None = None
    since: datetime | None = None
    actor: str | None = None


@dataclass(frozen=True)
class UndoStep:
    """One file: what happens to it. `edited`: only because the user included edited notes."""

    path: str
    step: Step
    why: str
    edited: bool = False
    spares_edit: bool = False
    """It is left only because it was edited, or may have been."""


@dataclass(frozen=True)
class LeftRun:
    """A later run of which nothing can be taken back: its notes were decided on, moved or edited since."""

    run: str
    at: str
    """When it wrote last: UTC, ISO 8601 with Z."""
    edited: int
    """So many of its notes would go, were edited ones included."""


@dataclass
class UndoPlan:
    """What an undo would do."""

    steps: list[UndoStep] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    undoes: list[str] = field(default_factory=list)
    left: int = 0
    """Notes that stay: somebody edited them, or might have, or decided on them."""
    edited: int = 0
    """Those of them that would not, were edited notes included."""
    run: str = ""
    """Of the last run the journal's name; "" where the user named something else than the last run."""
    at: str = ""
    """When it wrote last: UTC, ISO 8601 with Z."""
    later: list[LeftRun] = field(default_factory=list)
    """Runs after it, the newest first, that are left as they are."""
    sessions: int = 0
    """So many sessions it is about."""
    lost_of: frozenset[str] = frozenset()
    """Ids of the sessions whose evidence went, once it is carried out."""


class Undo:
    """Plans an undo and carries it out."""

    def __init__(self, store: VaultStore, journal: Journal, taken_back: TakenBack) -> None:
        self._store = store
        self._journal = journal
        self._taken_back = taken_back

    def plan(self, selector: Selector, *, include_edited: bool = False) -> UndoPlan:
        """What would be done now. Raises VaultUnavailable."""
        self._store.require_vault()
        acts = self._journal.acts()
        past = NoteHistory(self._store, acts)
        if selector.last:
            return self._plan_last(acts, past, selector.actor, include_edited)
        selected = _selected(acts, selector)
        work = _Work(self._store, past, include_edited)
        for act in reversed(selected):
            work.take_back(act)
        if selector.run is None and selector.actor is None:
            work.take_back_unrecorded(selector)
        plan = work.plan()
        plan.sessions = _count_sessions(selected)
        if selector.run is not None and selected:
            plan.run, plan.at = selector.run, selected[-1].at
        return plan

    def _plan_last(self, acts: Sequence[Act], past: NoteHistory, actor: str | None, include_edited: bool) -> UndoPlan:
        """Of the last run that has something to take back; where none has, what there is to say of the last one."""
        runs: dict[str, list[Act]] = {}
        for act in reversed(_not_undone(acts, actor)):
            runs.setdefault(act.run, []).append(act)
        later: list[LeftRun] = []
        last: UndoPlan | None = None
        for run, newest_first in runs.items():
            work = _Work(self._store, past, include_edited)
            for act in newest_first:
                work.take_back(act)
            plan = work.plan()
            plan.run, plan.at, plan.sessions = run, newest_first[0].at, _count_sessions(newest_first)
            if plan.changes:
                plan.later = later
                return plan
            last = last or plan
            if plan.steps:
                later.append(LeftRun(run, plan.at, plan.edited))
        return last or UndoPlan()

    def session_called(self, name: str, actor: str | None = None) -> str:
        """The session with this id, or the one whose id begins with it; `name` itself where there is none. What was
        taken back counts too: said again, the same must not mean another. Raises UsageError when several begin so, or
        too little is given."""
        wanted = _automatic(actor)
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
        return begun[0] if begun else name

    def knows_session(self, name: str) -> bool:
        """Whether any act, also one taken back, or any entry's evidence is of a session whose id begins so."""
        if any(act.session and act.session.startswith(name) for act in self._journal.acts()):
            return True
        entries = self._store.readable(self._store.walk())
        return any(source.session.startswith(name) for entry in entries for source in entry.sources if source.session)

    def carry_out(self, selector: Selector, *, include_edited: bool = False) -> UndoPlan:
        """Plan again, under the lock, and do it as one change.

        Raises BoundaryRefused, EditConflict, EntryInvalid, PathRefused, VaultUnavailable.
        """
        with self._store.lock():
            self._journal.recover()
            plan = self.plan(selector, include_edited=include_edited)
            if plan.changes:
                lost = _evidence_lost(plan.changes)
                plan.lost_of = frozenset(session for session, _ in lost)
                added = self._taken_back.add(lost)
                try:
                    self._commit(plan)
                except MemoryVaultError:
                    if not self._journal.is_interrupted:  # Else it is ended later.
                        with suppress(MemoryVaultError):
                            self._taken_back.withdraw(added)
                    raise
        return plan

    def _commit(self, plan: UndoPlan) -> None:
        self._journal.commit(
            plan.changes,
            run=self._journal.new_run("undo"),
            actor="undo",
            what=f"took back {counted(len(plan.changes), 'change')}",
            undoes=plan.undoes,
            consent=Consent.REQUESTED,
        )


def _evidence_lost(changes: Sequence[Change]) -> set[Evidence]:
    lost: set[Evidence] = set()
    kept: set[Evidence] = set()
    for change in changes:
        if not is_outside(change.path):
            lost |= evidence_in(change.path, change.before) if change.before is not None else set()
            kept |= evidence_in(change.path, str(change.after)) if change.after is not None else set()
    return lost - kept


def _not_undone(acts: Sequence[Act], actor: str | None) -> list[Act]:
    undone = {id_ for act in acts for id_ in act.undoes}
    wanted = _automatic(actor)
    return [act for act in acts if act.actor in wanted and act.id not in undone]


def _automatic(actor: str | None) -> frozenset[str]:
    return AUTOMATIC if actor is None else AUTOMATIC & {actor}


def _count_sessions(acts: Sequence[Act]) -> int:
    return len({act.session for act in acts if act.session})


def _selected(acts: Sequence[Act], selector: Selector) -> list[Act]:
    automatic = _not_undone(acts, selector.actor)
    if selector.run is not None:
        return [act for act in automatic if act.run == selector.run]
    if selector.session is not None:
        return [act for act in automatic if act.session == selector.session]
    since = selector.since
    return [act for act in automatic if since is not None and datetime.fromisoformat(act.at) >= since]


class _Work:
    """The vault as it will be, while acts are taken back, the newest first."""

    def __init__(self, store: VaultStore, past: NoteHistory, include_edited: bool) -> None:
        self._store = store
        self._past = past
        self._include_edited = include_edited
        self._will_be: dict[str, str | None] = {}
        self._steps: dict[str, UndoStep] = {}
        self._undoes: list[str] = []
        self._put_back: set[str] = set()
        """Ids of the acts of `_undoes` that are as if they had not been; of the others only evidence went."""
        self._weakened: set[str] = set()
        """Paths."""

    def take_back(self, act: Act) -> None:
        """All files of the act, or none; of a file outside the vault, what the act put in."""
        inside = [change for change in act.changes if not is_outside(change.path)]
        askings = [asking for change in inside if (asking := self._asking_since(act, change.path)) is not None]
        asked = {change.path: self._now(change.path) for asking in askings for change in asking.changes}
        for asking in askings:
            self._will_be |= {change.path: change.before for change in asking.changes}
        self._take_back_files(act, inside)
        for asking in askings:
            for change in asking.changes:
                if act.id not in self._undoes:
                    self._will_be[change.path] = asked[change.path]
                elif not is_idea_path(change.path):
                    self._set(change.path, change.before, "it asked about the idea, and was not answered")
            if act.id in self._undoes:
                self._undoes.append(asking.id)

    def _asking_since(self, act: Act, path: str) -> Act | None:
        """The act by which the program itself asked about the idea since, where nobody has answered or edited the
        question. None: there is no such act."""
        now = self._now(path)
        if now is None or not is_idea_path(path):
            return None
        written = {hash_of(now), hash_of(without_research(self._store, path, now))}
        last = next((a for a, made in reversed(self._past.later(act, path)) if made.after_hash in written), None)
        if last is None or not is_asking(last):
            return None
        for change in last.changes:
            text = self._now(change.path)
            if change.path != path and (text is None or hash_of(text) != change.after_hash):
                return None
        return last

    def _take_back_files(self, act: Act, inside: Sequence[Recorded]) -> None:
        faults = {change.path: fault for change in inside if (fault := self._fault(act, change)) is not None}
        for change in inside:
            if change.before is None and (name := self._own_file_beside(change.path)) is not None:
                faults.setdefault(change.path, Fault(FaultKind.DECIDED, f"{name} lies beside it: it stays"))
        if not faults:
            for change in reversed(inside):
                self._set(change.path, change.before, WRITTEN)
                if change.before is None and is_idea_path(change.path):
                    self._take_back_research(change.path)
            for change in act.changes:
                if is_outside(change.path):
                    self._take_back_outside(act, change)
            self._undoes.append(act.id)
            self._put_back.add(act.id)
            return
        of_idea = is_idea_path(inside[0].path) and list(faults) == [inside[0].path]
        if len(act.changes) == 1 or of_idea:
            self._take_back_evidence(act, inside[0], faults[inside[0].path])
            return
        if act.session and any(change.after_hash is None for change in inside):
            # It moved the note on, which cannot go back as it was: it stays, without what this session said.
            notes = [location for change in inside if change.after_hash for location in self._locations(act, change)]
            self._take_back_there(act, notes)
            return
        for change in inside:
            if change.path in faults and not _is_elsewhere(change.path, self._locations(act, change)):
                self._leave_for(change.path, faults[change.path])

    def _locations(self, act: Act, change: Recorded) -> list[Location]:
        return self._past.locations(change.path, act, change.after_hash, self._put_back)

    def _take_back_there(self, act: Act, notes: Sequence[Location]) -> None:
        """The act's evidence, out of the note where it is now and out of those into which it went."""
        steps = [self._take_back_at(act, location, is_only=len(notes) == 1) for location in notes]
        if "weaken" in steps and "leave" not in steps:
            self._undoes.append(act.id)

    def _take_back_at(self, act: Act, location: Location, is_only: bool) -> Literal["weaken", "leave", "gone"]:
        path, now = location.path, self._now(location.path)
        if now is None or location.digest is None:  # What bears the name now may be another note.
            self._steps.setdefault(path, UndoStep(path, "gone", GONE))
            return "gone"
        sources = parse_entry(path, now.encode("utf-8", "surrogateescape")).sources
        if act.session and all(source.session != act.session for source in sources):
            return "gone"
        empties = all(source.session == act.session for source in sources)
        edited = path not in self._weakened and hash_of(now) != location.digest
        if empties and not edited:  # What the user wrote into it would go with the note.
            edited = location.edited or any(self._past.was_edited(change.path, act) for change in act.changes)
        if location.decided or not (act.session or is_only):
            self._leave(path, DECIDED if location.decided else "another note went into it: it stays")
            return "leave"
        if edited and not self._include_edited:
            self._leave(path, f"{EDITED}: it stays", spares_edit=True)
            return "leave"
        of_act = any(change.path == path for change in act.changes)
        why = (WRITTEN if of_act else MOVED) if empties else (ADDED if of_act else MOVED) + ONLY_THIS
        self._weaken(path, now, act.session, EDITED if edited else why, edited)
        self._weakened.add(path)
        return "weaken"

    def _own_file_beside(self, path: str) -> str | None:
        """The name of a file or folder of the user's in the idea's folder, which would be left alone there."""
        if not is_idea_path(path) or self._now(path) is None:
            return None
        folder = path.rpartition("/")[0]
        try:
            names = sorted(os.listdir(self._store.vault / folder))
        except FileNotFoundError:  # It is somewhere else now, and comes back by what is taken back with it.
            return None
        except OSError:
            return "what cannot be listed"
        ours = {path, *(note.path for note in self._beside(folder) if note.kind == RESEARCH_KIND)}
        return next((name for name in names if not name.startswith(".") and f"{folder}/{name}" not in ours), None)

    def _beside(self, folder: str) -> Iterable[Entry]:
        return self._store.readable([each for each in self._store.walk() if each.startswith(f"{folder}/")])

    def _take_back_research(self, path: str) -> None:
        """The notes of what was looked up go with their idea, but for one that somebody has edited."""
        folder = path.rpartition("/")[0]
        for note in self._beside(folder):
            beside = note.path
            if note.kind != RESEARCH_KIND:
                continue
            edited = not is_as_written(note)
            if edited and not self._include_edited:
                self._leave(beside, f"{EDITED}: it stays", spares_edit=True)
            else:
                self._set(beside, None, "it was looked up about the idea", edited=edited)

    def _take_back_outside(self, act: Act, change: Recorded) -> None:
        """The user may have written there since: only the section goes, and only as it was put in."""
        now = self._now(change.path)
        if now is not None and hash_of(now) == change.after_hash:
            self._set(change.path, change.before, WRITTEN)
            return
        text = taken_back(self._store, act, now)
        if text is None:
            self._leave(change.path, "the section was edited or is gone: it stays")
        else:
            self._set(change.path, text, "the section was written by this run")

    def _fault(self, act: Act, change: Recorded) -> Fault | None:
        """Why the file can't simply be put back; None: it can."""
        now = self._now(change.path)
        digest = None if now is None else hash_of(now)
        if digest == change.after_hash:
            return None
        # What was looked up about an idea is our own writing, too, though no act of the journal.
        own = now is not None and is_idea_path(change.path)
        written = {digest, hash_of(without_research(self._store, change.path, now or ""))} if own else {digest}
        if change.after_hash in written:
            return None
        if now is None:
            return Fault(FaultKind.DECIDED, GONE)
        later = reversed(self._past.later(act, change.path))
        author = next((other for other, made in later if made.after_hash in written), None)
        if author is not None and author.actor in AUTOMATIC:
            return Fault(FaultKind.STRENGTHENED, ADDED + ONLY_THIS)
        if author is not None and author.actor == "undo" and not own:
            return Fault(FaultKind.UNDONE, UNDONE)
        if author is not None and is_asking(author) and self._now(question_path(slug_of(change.path))) is not None:
            return Fault(FaultKind.DECIDED, "you have edited the question about it: it stays")
        if author is not None:
            return Fault(FaultKind.DECIDED, DECIDED)
        return Fault(FaultKind.EDITED, f"{EDITED}: it stays")

    def _take_back_evidence(self, act: Act, change: Recorded, fault: Fault) -> None:
        notes = self._locations(act, change)
        if _is_elsewhere(change.path, notes) or fault.kind is FaultKind.UNDONE:
            self._take_back_there(act, notes)
            return
        now = self._now(change.path)
        edited = fault.kind is not FaultKind.STRENGTHENED
        if now is None or (edited and not (self._include_edited and fault.kind is FaultKind.EDITED)):
            self._leave_for(change.path, fault)
            return
        self._weaken(change.path, now, act.session, EDITED if edited else fault.why, edited)
        self._undoes.append(act.id)

    def take_back_unrecorded(self, selector: Selector) -> None:
        """Entries of the session, or since the time, that the journal does not know, or not from their beginning."""
        for entry in self._store.readable([each for each in self._store.walk() if not self._past.knows(each)]):
            if _is_of(entry, selector):
                self._take_back_untold(entry.path, entry, selector)
        for path, before in self._past.older():
            if selector.session is not None and selector.session not in before:
                continue  # It would cost much to parse all.
            entry = parse_entry(path, before.encode("utf-8", "surrogateescape"))
            if not _is_of(entry, selector):
                continue
            for location in self._past.locations(path, None, None, self._put_back):
                if not location.decided:
                    self._take_back_untold(location.path, entry, selector)

    def _take_back_untold(self, path: str, of: Entry, selector: Selector) -> None:
        sessions = [selector.session] if selector.session else [source.session for source in of.sources]
        text = self._now(path)
        if path in self._steps or text is None:
            return
        now = parse_entry(path, text.encode("utf-8", "surrogateescape"))
        if all(source.session not in sessions for source in now.sources):
            return
        if not self._include_edited:
            self._leave(path, f"{UNTOLD}: it stays", spares_edit=True)
            return
        for session in sessions:
            if text is not None:
                self._weaken(path, text, session, UNTOLD, edited=True)
                text = self._now(path)

    def _weaken(self, path: str, text: str, session: str, why: str, edited: bool) -> None:
        """Take the session's evidence out; an entry without any goes."""
        entry = parse_entry(path, text.encode("utf-8", "surrogateescape"))
        kept = [source for source in entry.sources if source.session != session]
        if not kept:
            self._set(path, None, why, edited=edited)
            return
        occurrences = max(1, entry.occurrences - (len(entry.sources) - len(kept)))
        try:
            weaker = self._store.render_edit(text, {"source": kept, "occurrences": occurrences})
        except EntryInvalid as error:
            self._leave(path, str(error))
            return
        self._set(path, str(weaker), why, edited=edited, step="weaken")

    def _now(self, path: str) -> str | None:
        return self._will_be[path] if path in self._will_be else self._past.on_disk(path)

    def _set(self, path: str, text: str | None, why: str, *, edited: bool = False, step: Step = "restore") -> None:
        self._will_be[path] = text
        self._steps[path] = UndoStep(path, "remove" if text is None else step, why, edited)

    def _leave(self, path: str, why: str, *, spares_edit: bool = False) -> None:
        step: Step = "leave" if self._now(path) is not None else "gone"
        self._steps.setdefault(path, UndoStep(path, step, why, spares_edit=spares_edit))

    def _leave_for(self, path: str, fault: Fault) -> None:
        self._leave(path, fault.why, spares_edit=fault.kind is FaultKind.EDITED)

    def plan(self) -> UndoPlan:
        """What came of it."""
        plan = UndoPlan(undoes=self._undoes)
        for path, text in self._will_be.items():
            before = self._past.on_disk(path)
            if text != before:
                after = None if text is None else Scrubbed.trusted(text, reason="it was in the vault before")
                plan.changes.append(Change(path, before, after))
        changed = {change.path for change in plan.changes}
        for path, step in sorted(self._steps.items()):
            if step.step in ("leave", "gone") or path in changed:
                plan.steps.append(step)
        staying = [step for step in plan.steps if step.step == "leave"]
        plan.left, plan.edited = len(staying), sum(step.spares_edit for step in staying)
        return plan


def _is_elsewhere(path: str, notes: Sequence[Location]) -> bool:
    """Has the program itself taken the note from there?"""
    return any(location.path != path for location in notes)


def _is_mined(entry: Entry) -> bool:
    return entry.fingerprint is not None and entry.effective_status in LIVING


def _is_of(entry: Entry, selector: Selector) -> bool:
    """Was it mined from the session, or since the time? By what stands in the entry itself."""
    if not _is_mined(entry):
        return False
    sessions = [source.session for source in entry.sources if source.session]
    if selector.session is not None:
        return selector.session in sessions
    since = selector.since
    if since is None or not sessions or not entry.created:
        return False
    return entry.created[:10] >= since.astimezone().date().isoformat()
