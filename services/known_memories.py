"""Search the vault for entries that match a candidate, for routing and for settling on a status."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from ..pipelines.candidate import KIND_OF_CATEGORY, Candidate
from ..pipelines.learned import NEAR_DISMISSED, learned_shift
from ..pipelines.likeness import (
    Compared,
    Relation,
    Wording,
    code_names,
    is_reworded,
    of_two_projects,
    own_words,
    relation,
    shared_words,
    speaks_of_this_project,
    statement_of,
    without_heading,
    wording_of,
    wording_of_saying,
)
from ..pipelines.routing import PUT_AWAY_STATUSES, REJECTED_STATUSES, Known, ReversedRule, Tier, project_of, tier_of
from ..runtime.errors import EntryInvalid, EntryNotFound, PathRefused
from ..runtime.layout import PROJECTS
from ..runtime.slug import slugify
from ..vault.active import is_entry_place
from ..vault.entry import ACTIVE, ARCHIVED, AWAITING_STATUSES, PROBABILITY, Entry, fingerprint
from ..vault.evidence import NOT_CONFIRMED_TAG, strip_evidence
from ..vault.header import TEMPLATE, out_of_use, skim, split_header
from ..vault.pending import pending_folder
from ..vault.render import RULE_KINDS
from ..vault.statuses import meant_status
from ..vault.store import VaultStore
from .semantic_similarity import LEAST_CONTRADICTING, LEAST_SAME, SemanticSimilarity
from .tombstones import identity

LIVE_FIRST = ("active", "pending", "incubating", "inbox")
_ID = re.compile(r"[\w:.-]+")
BACKFILLED = "backfilled"
"""Field of entries from old sessions, which give room to likelier ones."""
FIX_KIND = KIND_OF_CATEGORY["fix"]
STATEMENT_KINDS = RULE_KINDS | {KIND_OF_CATEGORY["fact"], KIND_OF_CATEGORY["workflow"]}
"""Kinds of user statements: a reader may classify one statement as a rule today, and as a fact or workflow tomorrow."""


Rank: TypeAlias = "tuple[int, float]"
"""The strength of a proposal of old sessions: its number of occurrences, then its probability."""


@dataclass(frozen=True)
class _Note:
    """What is kept in memory of each note while candidates are routed."""

    path: str
    kind: str
    status: str
    fingerprint: str
    project: str | None
    statement: str
    named: frozenset[str] = frozenset()
    """For waiting notes and fixes: all ids in the header, which include the sessions and records of the evidence."""
    was_proposed: bool = False
    """It was not certain enough to be saved without asking."""
    rank: Rank | None = None
    """The rank of a note of an old session while it waits for a decision; None for all others."""

    @property
    def is_approved(self) -> bool:
        return self.was_proposed and self.status == ACTIVE

    @property
    def is_dismissed(self) -> bool:
        return self.status in REJECTED_STATUSES

    @property
    def waits(self) -> bool:
        """Whether the note waits for a decision of the user."""
        return self.status in AWAITING_STATUSES

    @cached_property
    def wording(self) -> Wording:
        """The statement's words, computed only when a candidate of this kind comes."""
        return wording_of_saying(self.statement)

    @property
    def own_wording(self) -> Wording:
        """The words without the text that the statement answers."""
        return wording_of(own_words(self.statement))


class VaultMemories:
    """The entries that matter for some candidates, read in one pass over the vault and updated on each write."""

    def __init__(self, store: VaultStore, meaning: SemanticSimilarity | None = None) -> None:
        self._store = store
        self._meaning = meaning
        self._notes: dict[str, _Note] = {}
        for path, data in store.settled_contents():
            self._note(path, data.decode("utf-8", "replace"))
        store.require_vault()  # A vault that was unmounted meanwhile has not been searched completely.

    def entries(self, candidate: Candidate) -> list[Entry]:
        """Return every entry that says this in the same or similar words."""
        paths = self._paths(candidate.statement, candidate.kind, candidate.identity)
        return self._read([*paths, *(path for path in self._of_one_problem(candidate) if path not in paths)])

    def saying(self, statement: str, kind: str) -> list[Entry]:
        """Return every entry that says this in the same words, and those of this kind in similar words."""
        return self._read(self._paths(statement, kind, statement))

    def _read(self, paths: Iterable[str]) -> list[Entry]:
        found = []
        for path in paths:
            with suppress(EntryNotFound, EntryInvalid):
                entry = self._store.read_settled(path)
                found.append(replace(entry, status=_status_at(path, entry.effective_status)))
        return found

    def same(self, candidate: Candidate) -> Sequence[Known]:
        """See KnownMemories."""
        found = self.entries(candidate)
        if not found and tier_of(candidate)[0] is not Tier.HIGH:
            found = self._near_dismissed(candidate)
        known = [
            Known(
                path=entry.path,
                status=entry.effective_status,
                occurrences=entry.occurrences,
                records=_counted_records(entry, candidate),
                sessions=frozenset(source.session for source in entry.sources if source.session),
                project=slugify(entry.project) if entry.project else None,
                replaces=entry.supersedes if entry.effective_status in AWAITING_STATUSES else None,
                pieces=sum(len(source.records) for source in entry.sources),
                others_words=_holds_others_words(entry, candidate),
                is_counted=_is_counted(entry, candidate),
                is_users=_is_users(entry),
            )
            for entry in found
            # What an agent or a tool says of a failure is no rule, also in the same words.
            if (entry.kind == FIX_KIND) == (candidate.kind == FIX_KIND) and not _is_of_another_project(entry, candidate)
        ]
        rank = {status: place for place, status in enumerate(LIVE_FIRST)}
        # Stable: of equal rank, identical words come before similar ones.
        return sorted(known, key=lambda one: rank.get(one.status, len(rank)))

    def _near_dismissed(self, candidate: Candidate) -> list[Entry]:
        """Return the dismissed note that is closest in meaning, unless the two contradict each other."""
        wording = wording_of(own_words(candidate.identity))
        notes = [note for note in self._near({candidate.kind}, wording) if note.is_dismissed]
        near = [
            note.path
            for note, compared in self._compared(wording, [(note, note.own_wording) for note in notes], NEAR_DISMISSED)
            if compared is not None
            and compared.cosine >= NEAR_DISMISSED
            and relation(wording, note.own_wording, compared) is not Relation.CONTRADICTS
        ]
        return self._read(near)

    def shift(self, candidate: Candidate) -> float:
        """Return the change of the candidate's probability by the user's earlier decisions, in log-odds; see
        learned_shift."""
        wording = wording_of(own_words(candidate.identity))
        notes = [note for note in self._near({candidate.kind}, wording) if note.is_approved]
        texts = [note.own_wording.text for note in notes]
        cosines = self._meaning.cosines(wording.text, texts) if self._meaning is not None else []
        approved = sum(note.is_approved for note in self._notes.values())
        dismissed = sum(note.is_dismissed for note in self._notes.values())
        return learned_shift(approved, dismissed, max((one for one in cosines if one is not None), default=None))

    def reversed_rule(self, candidate: Candidate) -> ReversedRule | None:
        """See KnownMemories. Ignores rules of other projects, and candidates that may be an order for the moment.
        What the user typed reverses only what is the user's."""
        if candidate.kind not in STATEMENT_KINDS or tier_of(candidate)[0] is Tier.LOW:
            return None
        said_in = slugify(candidate.project) if candidate.project else None
        reach = (said_in,) if speaks_of_this_project(candidate.identity) else (None, said_in)
        wording = wording_of(own_words(candidate.identity))
        rules = [
            note
            for note in self._near(STATEMENT_KINDS, wording)
            if note.status in ("active", "pending") and note.project in reach
        ]
        rules.sort(key=lambda note: (note.status != "active", -shared_words(wording, note.wording), note.path))
        own = [(rule, rule.own_wording) for rule in rules]
        for rule, compared in self._compared(wording, own, LEAST_CONTRADICTING):
            if relation(wording, rule.own_wording, compared) is not Relation.CONTRADICTS:
                continue
            entries = self._read([rule.path])
            if candidate.confirmed and not any(map(_is_users, entries)):
                continue
            # "Always deploy on Mondays. Always deploy on Thursdays." in one message means both.
            if all(_records(entry, candidate).isdisjoint(candidate.records) for entry in entries):
                said = max((source.said for entry in entries for source in entry.sources), default="")
                return ReversedRule(rule.path, rule.project, said)
        return None

    def waiting(self, session: str) -> Sequence[frozenset[str]]:
        """Return, for each waiting entry with evidence of this session, all ids in its header."""
        return [note.named for note in self._notes.values() if note.waits and session in note.named]

    def fingerprint_of(self, path: str) -> str | None:
        """Return the fingerprint of the note at `path`; None if it has none."""
        return self._notes[path].fingerprint or None if path in self._notes else None

    def ranked(self, status: str) -> list[tuple[Rank, str]]:
        """Return the entries of old sessions that wait in this status, with their paths, weakest first."""
        return sorted((note.rank, note.path) for note in self._notes.values() if note.rank and note.status == status)

    def learned(self, path: str, text: str | None) -> None:
        """Update after the note at `path` was written or removed."""
        self._notes.pop(path, None)
        if text is not None:
            self._note(path, text)

    def came_back(self, path: str) -> bool:
        """Read a note that was not there when the vault was read; whether there is one. Many editors rename or remove a
        file for a moment to save it."""
        if path not in self._notes:
            with suppress(EntryNotFound, EntryInvalid, PathRefused):
                self._note(path, self._store.read_settled(path).text)
                return True
        return False

    def _note(self, path: str, text: str) -> None:
        unfinished = out_of_use(path, text)
        if unfinished == TEMPLATE:
            return
        fields, body = skim(text)
        parts = split_header(text)
        status = unfinished or _status_at(path, meant_status(fields.get("status", ACTIVE).lower()))
        kind = fields.get("kind", "")
        project = fields.get("project") or _project_of_path(path)
        has_names = parts is not None and (status in AWAITING_STATUSES or kind == FIX_KIND)
        self._notes[path] = _Note(
            path=path,
            kind=kind,
            status=status,
            fingerprint=fields.get("fingerprint", ""),
            project=slugify(project) if project else None,
            statement=statement_of(body),
            named=frozenset(_ID.findall(parts[1])) if parts is not None and has_names else frozenset(),
            was_proposed=fields.get("confidence", Tier.HIGH) != Tier.HIGH and "fingerprint" in fields,
            rank=_rank_of(fields) if status in AWAITING_STATUSES and "decision" not in fields else None,
        )

    def _near(self, kinds: Collection[str], wording: Wording) -> list[_Note]:
        """Return the notes of these kinds that share a word with it, by kind, largest share first."""
        of_kind = (note for note in self._notes.values() if note.kind in kinds)
        some = [note for note in of_kind if not wording.words.isdisjoint(note.wording.words)]
        return sorted(some, key=lambda note: (note.kind, -shared_words(wording, note.wording), note.path))

    def _paths(self, statement: str, kind: str, identity: str) -> list[str]:
        """Return the notes with this fingerprint, then those that say the same in other words."""
        key = fingerprint(identity)
        exact = [note.path for note in self._notes.values() if note.fingerprint == key]
        wording = wording_of_saying(statement)
        near = [
            note
            for note in self._near(STATEMENT_KINDS if kind in STATEMENT_KINDS else {kind}, wording)
            if note.fingerprint != key and note.status not in PUT_AWAY_STATUSES
        ]
        alike = [
            note.path
            for note, compared in self._compared(wording, [(note, note.wording) for note in near], LEAST_SAME)
            if relation(wording, note.wording, compared) is Relation.SAME
        ]
        return [*exact, *alike]

    def _of_one_problem(self, candidate: Candidate) -> list[str]:
        """Return waiting notes with a finding of the same session about the same piece of code: they are one memory as
        long as it waits.

        Of decided notes, return those that hold this very finding, because it is not news, whatever the decision was.
        """
        if candidate.category != "fix":
            return []
        names = code_names(candidate.identity)
        of_session = [
            note for note in self._notes.values() if note.kind == candidate.kind and candidate.session in note.named
        ]
        waiting = [note.path for note in of_session if note.waits and names & code_names(note.statement)]
        decided = [note.path for note in of_session if not note.waits and note.named.issuperset(candidate.records)]
        # The records of some hosts are numbers, which may occur elsewhere in a header.
        holding = [entry.path for entry in self._read(decided) if _holds(entry, candidate)]
        return [*waiting, *holding]

    def _compared(
        self, wording: Wording, notes: Sequence[tuple[_Note, Wording]], least: float
    ) -> Iterable[tuple[_Note, Compared | None]]:
        """Return each note with what the models say of its wording and the statement; None without models."""
        texts = [its.text for _, its in notes]
        found = [None] * len(notes) if self._meaning is None else self._meaning.compared(wording.text, texts, least)
        return zip((note for note, _ in notes), found, strict=True)


def _is_of_another_project(entry: Entry, candidate: Candidate) -> bool:
    """Whether both say "this project" and mean different ones. False for general notes and for the same evidence."""
    if entry.project is None or candidate.category == "idea" or _holds(entry, candidate):
        return False
    return of_two_projects(
        (statement_of(entry.body), slugify(entry.project)), (candidate.statement, project_of(candidate))
    )


def _holds(entry: Entry, candidate: Candidate) -> bool:
    """Whether the candidate's records of its session are evidence of the entry."""
    return _records(entry, candidate).issuperset(candidate.records)


def _counted_records(entry: Entry, candidate: Candidate) -> frozenset[str]:
    """Return the candidate's records that are evidence of the entry already. A record named by its position in the file
    is a different one in each session; in a fork it may be a copy, so there it is no further evidence."""
    if not {source.session for source in entry.sources}.isdisjoint(candidate.forked_from):
        return frozenset(candidate.records)
    found = {identity((source.session, record)) for source in entry.sources for record in source.records}
    return frozenset(each for each in candidate.records if identity((candidate.session, each)) in found)


def _is_counted(entry: Entry, candidate: Candidate) -> bool:
    """Whether it is counted already: the same words in this session, or the same time, whatever the ids of its records.

    The same words again in a session may come from a loop; a copy in another session, as in a fork, has the same time.
    The findings of an agent are identified by their records alone.
    """
    if candidate.category == "fix":
        return False
    same_words = entry.fingerprint == fingerprint(candidate.identity)
    return any(
        (same_words and source.session == candidate.session)
        or (candidate.said_at is not None and source.said == candidate.said_at)
        for source in entry.sources
        if source.session
    )


def _records(entry: Entry, candidate: Candidate) -> frozenset[str]:
    """Return the entry's evidence from the candidate's session."""
    return frozenset(each for source in entry.sources if source.session == candidate.session for each in source.records)


def says_all_of(candidate: Candidate, entry: Entry) -> bool:
    """Whether the candidate says literally all that the note says above its evidence."""
    text = without_heading(strip_evidence(entry.body))
    return fingerprint(own_words(candidate.statement)) == fingerprint(own_words(text))


def _holds_others_words(entry: Entry, candidate: Candidate) -> bool:
    """Whether the note has words that the user probably never typed: a model may have taken them from the agent, and
    text that no host has confirmed is the user's only if the candidate says the same."""
    if any(not source.session for source in entry.sources) or is_reworded(entry.body):
        return True
    return NOT_CONFIRMED_TAG in entry.tags and not says_all_of(candidate, entry)


def _is_users(entry: Entry) -> bool:
    """See `Known.is_users`."""
    if entry.effective_status == ACTIVE:
        return True
    typed = bool(entry.sources) and all(source.session for source in entry.sources)
    return typed and NOT_CONFIRMED_TAG not in entry.tags and not is_reworded(entry.body)


def _status_at(path: str, status: str) -> str:
    """Return the status of a note at this path; a note that the user moved into the archive is no longer in use."""
    return ARCHIVED if status == ACTIVE and not is_entry_place(path) and not pending_folder(path) else status


def _rank_of(fields: Mapping[str, str]) -> Rank | None:
    with suppress(KeyError, ValueError):
        if BACKFILLED in fields:
            return int(fields.get("occurrences", "1")), float(fields[PROBABILITY])
    return None


def _project_of_path(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == PROJECTS else None
