"""The watchlist's notes, their only writer, and the decisions by command or by a line in a note."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date

from ...pipelines.originality import find_copy
from ...pipelines.watchlist import (
    FOLDER,
    HOW_TO_DECIDE,
    Decision,
    archive_path,
    is_archived,
    is_note,
    note_path,
    parse_decision,
    parts_of,
)
from ...runtime.days import parse_local_day
from ...runtime.errors import EntryInvalid, EntryNotFound, MemoryVaultError, PathRefused
from ...runtime.layout import WATCHLIST
from ...runtime.settings import Settings
from ...runtime.slug import free_slug
from ...vault.entry import PATTERN_KIND, Entry
from ...vault.fields import StoreValue
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..decision_property import DecisionOutcome, DecisionProblem, apply_written, decision_keys, read_decision
from ..journal import Change, Journal, rewritten
from ..remembering import free_path
from ..retrying import read_seen, retry_edit
from ..stores import vault_store

_ORDER = {"HIGH": 0, "MEDIUM": 1, "LOW": 2}


class CopyRefused(MemoryVaultError):
    """The text of a note is copied from its source."""


class Watchlist:
    """The waiting patterns of one vault, and the user's decisions on them."""

    def __init__(self, settings: Settings, store: VaultStore | None = None, journal: Journal | None = None) -> None:
        self.store = store or vault_store(settings)
        self.journal = journal or Journal(settings.state, self.store)

    def propose(
        self,
        source: str,
        pattern: str,
        fields: Mapping[str, StoreValue],
        title: Scrubbed,
        body: Scrubbed,
        *,
        made_from: Sequence[str],
        run: str,
    ) -> str:
        """Write a new note and return its path. Raises PathRefused, CopyRefused, EntryExists, VaultUnavailable.

        It can write nothing else: the path is made of the names of source and pattern. A symbolic link on it is
        refused, and so is a text that copies its source.
        """
        path, vault = note_path(source, pattern), os.path.realpath(self.store.vault)
        if os.path.realpath(os.path.join(vault, path)) != os.path.join(vault, path):
            raise PathRefused(f"{path} was not written: a symbolic link leads out of {FOLDER}")
        if copied := find_copy(body, made_from):
            raise CopyRefused(f"{path} was not written: {copied}")
        text = self.store.compose(path, {"kind": PATTERN_KIND, "always_load": None, **fields}, title, body)
        self.journal.commit([Change(path, None, text)], run=run, actor="adaptation", what=f"proposed: {pattern}")
        return path

    def free_name(self, source: str, pattern: str) -> str:
        """Return `pattern`, or the next name beside it that no note, archived or not, has."""

        def taken(name: str) -> bool:
            path = note_path(source, name)
            return self.store.exists(path) or self.store.exists(archive_path(path))

        return free_slug(pattern, taken)

    def all(self) -> list[Entry]:
        """Return every note, including archived ones."""
        return [*self.store.readable(filter(is_note, self.store.walk_special({WATCHLIST})))]

    def proposed(self) -> frozenset[str]:
        """Return the identities of all patterns with a note: none is proposed again, whatever was decided."""
        return frozenset(str(entry.extra["identity"]) for entry in self.all() if entry.extra.get("identity"))

    def waiting(self, today: date) -> list[Entry]:
        """Return the notes that wait for a decision today, by confidence, score and path."""

        def rank(note: Entry) -> tuple[int, int, str]:
            score = note.extra.get("score")
            return _ORDER.get((note.confidence or "").upper(), 3), -score if isinstance(score, int) else 0, note.path

        return sorted((note for note in self.all() if is_waiting(note) and not is_deferred(note, today)), key=rank)

    def find(self, source: str, pattern: str) -> str:
        """Return the path of a note. Raises EntryNotFound, PathRefused."""
        path = f"{FOLDER}/{source}/{pattern.removesuffix('.md')}.md"
        parts_of(path)
        if not self.store.exists(path):
            raise EntryNotFound(
                f"there is no {source}/{pattern} in the watchlist: `memory skills watchlist list` shows what is"
            )
        return path

    def decide(self, path: str, decision: Decision, *, reason: Scrubbed | None = None, run: str) -> DecisionOutcome:
        """Carry out a decision. Raises EditConflict, EntryNotFound, PathRefused, VaultUnavailable; nothing is changed
        then."""
        parts_of(path)

        def decided() -> DecisionOutcome:
            with self.journal.locked():
                return self._carry_out(path, decision, reason, run)

        return retry_edit(decided)

    def _carry_out(self, path: str, decision: Decision, reason: Scrubbed | None, run: str) -> DecisionOutcome:
        entry, today = read_seen(self.store, path, gone="is not there any more"), self.store.today()
        fields: dict[str, StoreValue] = {**dict.fromkeys(decision_keys(entry)), "deferred_until": None}
        if reason:
            fields["reason"] = reason
        target, verdict = path, decision.verdict
        if verdict == "promoted":
            fields |= {"status": "active", "promoted": today, "dismissed": None}
        elif verdict == "dismissed":
            fields |= {"status": "dismissed", "dismissed": today, "promoted": None}
            target = free_path(archive_path(path), self.store)
        else:
            fields |= {"status": "pending", "deferred_until": decision.until, "promoted": None}
        text = self.store.render_edit(entry.text, fields)
        changes = rewritten(entry, text, target)
        self.journal.commit(changes, run=run, actor="review", what=f"{verdict}: {'/'.join(parts_of(path))}")
        return DecisionOutcome(path, verdict, target)

    # Decisions in notes

    def decided_notes(self) -> Iterator[tuple[str, str]]:
        """Return (path, decision) of every note with a written decision."""
        for entry in self.all():
            if (written := read_decision(entry)) and not is_archived(entry.path):
                yield entry.path, written

    def apply_notes(self, still_owned: Callable[[], bool] = lambda: True) -> list[DecisionOutcome | DecisionProblem]:
        """Carry out the decisions written in notes. Raises VaultUnavailable."""
        run = self.journal.new_run("watchlist")

        def decide(path: str, written: str) -> list[DecisionOutcome]:
            decision = parse_decision(written, self.store.today())
            if decision is None:
                raise EntryInvalid(f"decision {written[:60]!r} is not a decision: write {HOW_TO_DECIDE}")
            return [self.decide(path, decision, run=run)]

        return apply_written(self.store, [*self.decided_notes()], decide, still_owned)


def is_waiting(note: Entry) -> bool:
    """Whether the note has no decision yet, or one to decide later."""
    return not is_archived(note.path) and note.effective_status == "pending"


def is_deferred(note: Entry, today: date) -> bool:
    """Whether the day to which the note is deferred has not come."""
    until = parse_local_day(str(note.extra.get("deferred_until") or ""))
    return until is not None and until > today
