"""Count, rank and bound what all old sessions said, then write it, and list the rest in one note, the digest.

The outcome depends on what was mined and on the vault alone. A settling that was killed is repeated: what it had
written is recognised by its records, and counts within the bounds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile

from ...pipelines.candidate import Candidate
from ...pipelines.corpus import (
    HEADING,
    CorpusFigures,
    Pattern,
    Saying,
    Selection,
    digest_body,
    marks_in,
    most_ideas,
    patterns_of,
    select,
    unconfirmed,
)
from ...pipelines.likeness import LikenessLimits
from ...pipelines.routing import REJECTED_STATUSES, Thresholds, Tier
from ...runtime.errors import EntryInvalid, EntryNotFound
from ...runtime.killpoint import kill_point
from ...runtime.layout import CORPUS_DIGEST
from ...runtime.settings import Settings
from ...tasks.queue.enqueue import open_ledger
from ...tasks.queue.ledger import Ledger
from ...vault.entry import AWAITING_STATUSES, DIGEST_KIND, fingerprint, parse_entry
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..ideas.ledger import decided_ideas
from ..journal import BACKFILL, Journal
from ..known_memories import VaultMemories
from ..remembering import remember
from ..tombstones import TakenBack, identity, said_by
from .backfill import SETTLE
from .evidence_notes import EvidenceNotes, evidence_of
from .store import CorpusStore

log = logging.getLogger(__name__)

REFRESH = "corpus.digest"
DIGEST = CORPUS_DIGEST
DIGEST_TITLE = "What old sessions said"
INTRODUCTION = (
    "Made by `memory reflect corpus`. It is rewritten when more is mined; what you write above the heading below stays."
)
DECIDED = "decided"
SAVED_RULES = 20
"""So many standing rules of old sessions are saved unasked, the strongest; the others wait for review."""
"""In place of the status of an idea that is still in the incubator, but that the user has decided on."""
ATTEMPTS_AT_CHANGING_VAULT = 3


@dataclass(frozen=True)
class SettleCounts:
    """How many patterns a settling saved, proposed, held back and strengthened."""

    saved: int
    proposed: int
    held: int
    strengthened: int


def settle(
    settings: Settings, store: VaultStore, check: Callable[[], None] = lambda: None, *, run: str = ""
) -> SettleCounts:
    """Write what is new and strong enough, then the digest. `check` may raise before any write.

    All writes are one run of the journal. `run` names the backfill, so that a repeated settling continues its run.

    Raises VaultUnavailable, EditConflict.
    """
    journal = Journal(settings.state, store)
    run = f"{BACKFILL}:{run}" if run else journal.new_run(BACKFILL)
    last_act = next((act.id for act in journal.newest()), "")
    found = survey(settings, store)
    chosen = found.chosen()
    strengthened = 0
    for pattern, status in found.known:
        # Only what its note does not name yet: each writing looks through the whole vault.
        news = [
            each
            for each in pattern.sayings
            if not (found.notes.name(evidence_of(each.candidate)) and found.notes.holds(pattern, each))
        ]
        if news and status not in REJECTED_STATUSES:
            more = replace(pattern, sayings=(*pattern.sayings[:1], *news))
            # What waits for the user goes on waiting, whatever other old sessions say.
            more = unconfirmed(more) if status == "pending" and pattern.tier is Tier.HIGH else more
            strengthened += bool(_write(more, store, settings, check, run))
    # Of two rules that contradict each other, the later one is proposed in the place of the earlier.
    for pattern in (*sorted(chosen.saved, key=_last_said), *sorted(chosen.proposed, key=_last_said)):
        _write(pattern, store, settings, check, run)
        kill_point("corpus-written")
    figures = CorpusFigures(
        sessions=found.sessions,
        in_vault=len(found.known) + len(chosen.saved) + len(chosen.proposed),
    )
    check()
    awaiting = [*(pattern for pattern, status in found.known if status in AWAITING_STATUSES), *chosen.proposed]
    with store.lock():
        since = takewhile(lambda act: act.id != last_act, journal.newest())
        is_current = all(act.run == run for act in since)
        if is_current:
            write_digest(store, chosen.held, figures, awaiting)
    if not is_current:  # Lines may have been decided on meanwhile.
        refresh_digest(settings, store, awaiting)
    return SettleCounts(len(chosen.saved), len(chosen.proposed), len(chosen.held), strengthened)


@dataclass(frozen=True)
class Survey:
    """What all old sessions said, and how much of it the vault holds."""

    known: Sequence[tuple[Pattern, str]]
    """Patterns in the vault, with the status of the note."""
    new: Sequence[Pattern]
    """Patterns neither in the vault nor taken back; strongest first."""
    notes: EvidenceNotes
    """The notes that name evidence of these."""
    sessions: int
    memories_wait: int
    """Known memories that wait for the user's decision, in the review or the inbox."""
    ideas_wait: int
    rule_room: int
    """How many more rules may be saved unasked; may be negative, as may the next two."""
    room: int
    """How many more memories may wait in review."""
    idea_room: int
    """How many more ideas may wait in the incubator."""

    def chosen(self) -> Selection:
        """Select what a settling would write now."""
        return select(self.new, self.rule_room, self.room, self.idea_room)


def survey(settings: Settings, store: VaultStore) -> Survey:
    """Compare what was mined with the vault. Writes nothing. Raises VaultUnavailable."""
    corpus = CorpusStore(settings.state)
    limits = LikenessLimits()
    thresholds = Thresholds()
    said = list(corpus.sayings())
    notes = EvidenceNotes(store, patterns_of(said, limits, thresholds))
    said = _without_copies(said, notes)
    taken_back = {identity(each) for each in TakenBack(settings.state, store).evidence()}
    kept: list[Saying] = []
    gone: list[Saying] = []
    for pattern in patterns_of(said, limits, thresholds):
        for saying in pattern.sayings:
            is_gone = said_by(saying.candidate) in taken_back and not notes.holds(pattern, saying)
            (gone if is_gone else kept).append(saying)
    patterns = patterns_of(kept, limits, thresholds)
    statuses = _statuses(patterns, notes, store, settings)
    known = [(pattern, status) for pattern, status in zip(patterns, statuses, strict=True) if status is not None]
    waiting = sum(status in AWAITING_STATUSES for _, status in known)
    # Also those that the user took back: a rule that goes makes no room for another one unasked.
    saved = sum(status not in AWAITING_STATUSES for pattern, status in known if pattern.tier is Tier.HIGH)
    lost = patterns_of(gone, limits, thresholds)
    nowhere = [status is None for status in _statuses(lost, notes, store, settings)]
    saved += sum(pattern.tier is Tier.HIGH for pattern, is_lost in zip(lost, nowhere, strict=True) if is_lost)
    ideas = sum(status in AWAITING_STATUSES for pattern, status in known if pattern.candidate.category == "idea")
    most = settings.reflection.corpus_review_entries
    return Survey(
        known=known,
        new=[pattern for pattern, status in zip(patterns, statuses, strict=True) if status is None],
        notes=notes,
        sessions=len(corpus.cursors()),
        memories_wait=waiting - ideas,
        ideas_wait=ideas,
        rule_room=SAVED_RULES - saved,
        room=most - (waiting - ideas),
        idea_room=most_ideas(most) - ideas,
    )


def _statuses(
    patterns: Sequence[Pattern], notes: EvidenceNotes, store: VaultStore, settings: Settings
) -> list[str | None]:
    """Find for each pattern the status of the note that holds it; None if there is none."""
    memories = VaultMemories(store, settings)
    decided = decided_ideas(settings, store)
    statuses: list[str | None] = []
    for pattern in patterns:
        path = notes.path_of(pattern)
        if path is None:
            same = memories.same(pattern.candidate)
            statuses.append((DECIDED if same[0].path in decided else same[0].status) if same else None)
            continue
        status = None
        with suppress(EntryNotFound, EntryInvalid):
            status = store.read(path).effective_status
        statuses.append(DECIDED if path in decided else status)
    return statuses


def _without_copies(sayings: Sequence[Saying], notes: EvidenceNotes) -> list[Saying]:
    """Leave one saying of each record, and of the same words one of each time and session.

    A session that was forked, or resumed under another id, begins with a copy of the other; a loop says the same again
    and again. One that a note names stays before the others, then one that the host confirms.
    """
    said_in: dict[tuple[str, str], set[str]] = {}
    for saying in sayings:
        candidate = saying.candidate
        said_in.setdefault((candidate.category, candidate.statement), set()).add(candidate.session)
    left: list[Saying] = []
    seen: set[tuple[object, ...]] = set()

    def rank(saying: Saying) -> tuple[object, ...]:
        return not notes.name_any(evidence_of(saying.candidate)), not saying.candidate.confirmed, saying.order

    for saying in sorted(sayings, key=rank):
        candidate = saying.candidate
        words = (candidate.category, fingerprint(candidate.identity))
        marks: set[tuple[object, ...]] = {(candidate.category, candidate.statement, said_by(candidate))}
        if candidate.category != "fix":
            marks.add((*words, "in", candidate.session))
            marks |= {(*words, "at", candidate.said_at)} if candidate.said_at else set()
        if said_in[candidate.category, candidate.statement].isdisjoint(candidate.forked_from) and not marks & seen:
            left.append(saying)
            seen |= marks
    return left


def _last_said(pattern: Pattern) -> tuple[float, str, int]:
    return max(saying.order for saying in pattern.sayings)


def _write(pattern: Pattern, store: VaultStore, settings: Settings, check: Callable[[], None], run: str) -> list[str]:
    """Remember each saying of the pattern, under the vault's lock; the paths that are new or changed, in that order."""
    wording, typed = pattern.candidate.statement, pattern.candidate.confirmed
    written: list[str] = []
    with store.lock():
        check()
        for host, candidates in _by_host(
            # One pattern, one note: all of them in the wording of the first, and as sure as that is of who typed it.
            (saying.host, replace(saying.candidate, statement=wording, confirmed=typed and saying.candidate.confirmed))
            for saying in pattern.sayings
        ):
            written += remember(candidates, store, settings, host=host, run=run).written
    return written


def write_pattern(pattern: Pattern, store: VaultStore, settings: Settings, run: str) -> str | None:
    """Write one pattern on the user's word; the path of its note, None where nothing was to be written.

    Raises EditConflict, VaultUnavailable.
    """
    written = _write(pattern, store, settings, lambda: None, run)
    return written[-1] if written else None


def path_of(settings: Settings, store: VaultStore, pattern: Pattern, among: Sequence[Pattern]) -> str | None:
    """The note that holds the pattern, of `among` which are all that there are; None if there is none."""
    found = EvidenceNotes(store, among).path_of(pattern)
    same = VaultMemories(store, settings).same(pattern.candidate) if found is None else []
    return same[0].path if same else found


def _by_host(pairs: Iterable[tuple[str, Candidate]]) -> list[tuple[str, list[Candidate]]]:
    runs: list[tuple[str, list[Candidate]]] = []
    for host, candidate in pairs:
        if not runs or runs[-1][0] != host:
            runs.append((host, []))
        runs[-1][1].append(candidate)
    return runs


def request_digest(settings: Settings, store: VaultStore, changed: Collection[str]) -> None:
    """Enqueue a rewrite of the digest, if there is or will be one, after evidence of these sessions left the vault.

    Raises QueueUnavailable.
    """
    if CorpusStore(settings.state).sessions().keys().isdisjoint(changed):
        return
    with open_ledger(settings) as ledger:
        # The first settling may be about to write what it found before.
        if is_settling(ledger) or store.exists(DIGEST):
            ledger.enqueue(REFRESH, unique_key=REFRESH)


def refresh_digest(settings: Settings, store: VaultStore, awaiting: Sequence[Pattern] = ()) -> None:
    """Rewrite the digest only; nothing is proposed to the user. Raises EditConflict, VaultUnavailable.

    Where the vault changes while it is surveyed, that is done again: what was decided meanwhile is no line any more.
    """
    journal = Journal(settings.state, store)
    for attempt in range(ATTEMPTS_AT_CHANGING_VAULT):
        before = journal.state_of_files()
        found = survey(settings, store)
        with store.lock():
            if journal.state_of_files() == before or attempt == ATTEMPTS_AT_CHANGING_VAULT - 1:
                write_digest(store, found.new, CorpusFigures(found.sessions, len(found.known)), awaiting)
                return


def write_digest(
    store: VaultStore, held: Sequence[Pattern], figures: CorpusFigures, awaiting: Sequence[Pattern] = ()
) -> None:
    """Create the digest, or replace its generated part if that has changed. Raises EditConflict.

    `awaiting`: what waits in the vault now. A decision that the user wrote meanwhile into the line of such a one stays
    there until it is carried out.
    """
    with store.lock():
        try:
            data = store.read_bytes(DIGEST)
        except EntryNotFound:
            body = _scrubbed(f"{INTRODUCTION}\n\n{digest_body(held, figures)}")
            store.create(DIGEST, {"kind": DIGEST_KIND}, _scrubbed(DIGEST_TITLE), body)
            return
        entry = parse_entry(DIGEST, data)
        generated = digest_body(held, figures, marks_in(entry.body), awaiting)
        above = entry.body.split(HEADING, 1)[0].rstrip() if HEADING in entry.body else entry.body
        if f"{above}\n\n{generated}".strip() != entry.body.strip():
            store.update(DIGEST, entry.content_hash, body=_scrubbed(f"{above}\n\n{generated}"))


def _scrubbed(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="statements that the mining child scrubbed, the user's own note, our words")


def is_settling(ledger: Ledger) -> bool:
    return bool(ledger.list(["queued", "running"], kind=SETTLE, most=1))
