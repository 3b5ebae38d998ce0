"""Turn routed candidates into entries of the vault.

Runs under the vault's lock. Evidence counts only once, so that running it again changes nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ..pipelines.candidate import Candidate
from ..pipelines.learned import shifted
from ..pipelines.likeness import own_words, quotes_of, statement_of
from ..pipelines.routing import (
    ONE_OCCURRENCE,
    Action,
    RoutedCandidate,
    Tier,
    beyond_limit,
    group_of,
    is_further_finding,
    route,
    status_at,
)
from ..runtime.errors import EntryInvalid, EntryNotFound, PathRefused, VaultUnavailable
from ..runtime.layout import DEFAULT_GROUP, INBOX, INCUBATOR, PROJECTS
from ..runtime.paths import resolve_inside
from ..runtime.settings import Settings
from ..runtime.slug import free_slug, further_slug
from ..tasks.queue.kinds import Json
from ..vault.entry import CONTRADICTS, PROBABILITY, Entry, Source, fingerprint
from ..vault.evidence import (
    EVIDENCE_HEADING,
    LOOKED_UP,
    NOT_CONFIRMED_TAG,
    NOT_TYPED,
    SAID,
)
from ..vault.fields import StoreValue
from ..vault.note_text import replacement_line
from ..vault.pending import is_idea_path
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .boundary import consent_of, is_outside
from .ideas.ledger import (
    BY_COMMAND,
    commit_idea,
    decided_ideas,
    has_own_title,
    is_titled_otherwise,
    new_idea_path,
    slug_of,
)
from .journal import Change, Journal, rewritten, text_of
from .known_memories import BACKFILLED, Rank, VaultMemories, says_all_of
from .retrying import retry_edit
from .semantic_similarity import SemanticSimilarity
from .tombstones import separate

log = logging.getLogger(__name__)

SESSION = "Session "
"""The start of the line below a quotation."""
NO_ROOM = "too unsure for the room that old sessions have"
"""The reason why a candidate of an old session is not written."""
MOST_WORDINGS = 4
"""The most wordings that a note quotes."""
INBOX_SHARE, IDEAS_SHARE = 2, 0.75
"""How many notes of old sessions the inbox and the incubator may hold for each proposal that may wait: by default 40
and 15, which leaves room for those of fresh sessions."""
COUNTED_AS = {"active": "saved", "pending": "for_review", "inbox": "inboxed", "incubating": "ideas"}
"""Name in the counts, by the status of what is written."""


@dataclass(frozen=True)
class MemoryReport:
    """The results for the candidates of one reading."""

    routed: tuple[RoutedCandidate, ...] = ()
    written: tuple[str, ...] = ()
    """Paths of new and changed entries."""
    counts: dict[str, Json] = field(default_factory=dict)


def preview(candidates: Sequence[Candidate], store: VaultStore, settings: Settings) -> tuple[RoutedCandidate, ...]:
    """Return what `remember` would do with each candidate by itself, without writing."""
    if not candidates:
        return ()
    with SemanticSimilarity(settings) as meaning:
        known = VaultMemories(store, meaning)
        candidates, gone = separate(store, candidates)
        return (*(_route(candidate, known, settings) for candidate in candidates), *gone)


def remember(
    candidates: Sequence[Candidate],
    store: VaultStore,
    settings: Settings,
    *,
    host: str,
    run: str | None = None,
    most_waiting: int | None = None,
) -> MemoryReport:
    """Write, strengthen or skip each candidate. Call it under `store.lock()`.

    `run` is the journal's run name; the default is a new run. `most_waiting` limits how many proposals of old sessions
    may wait; the most likely are kept.
    """
    journal = Journal(settings.state, store)
    journal.recover()
    if not candidates:
        return MemoryReport()
    candidates, gone = separate(store, candidates)
    routed: list[RoutedCandidate] = []
    written: list[str] = []
    counts: Counter[str] = Counter(taken_back=len(gone)) if gone else Counter()
    with SemanticSimilarity(settings) as meaning:
        known = VaultMemories(store, meaning)
        writer = _Writer(settings, known, journal, host or "claude", run or journal.new_run("reflect"), most_waiting)
        too_many = _too_many(candidates, writer.known, settings.reflection.session_entries)
        for index, candidate in enumerate(candidates):
            decision = _route(candidate, writer.known, settings)
            if decision.action is Action.WRITE and known.came_back(decision.destination):
                decision = _route(candidate, writer.known, settings)
            if index in too_many and decision.action is Action.WRITE:
                decision = replace(decision, action=Action.NOTHING, why="too much of this session waits already")
                counts["over_limit"] += 1
                routed.append(decision)
                continue
            decision = writer.within_room(decision)
            routed.append(decision)
            match decision.action:
                case Action.NOTHING:
                    counts["no_room" if decision.why == NO_ROOM else "known"] += 1
                case Action.STRENGTHEN:
                    try:
                        written.append(writer.strengthen(decision))
                        counts["strengthened"] += 1
                    except (EntryInvalid, PathRefused) as error:
                        # A note that cannot be written or edited must not stop the remaining candidates.
                        log.warning("not strengthened: %s: %s", decision.destination, error)
                        counts["not_strengthened"] += 1
                case Action.WRITE:
                    written.append(writer.write(decision))
                    counts[COUNTED_AS[status_at(decision.destination)]] += 1
    if writer.made_room:
        counts["made_room"] = writer.made_room
    if counts["over_limit"]:
        log.warning(
            "session %s: %d proposals more than reflection.session_entries allows were not written; "
            "`memory reflect` shows all of a transcript",
            candidates[0].session,
            counts["over_limit"],
        )
    return MemoryReport((*routed, *gone), tuple(dict.fromkeys(written)), dict(counts))


def _too_many(candidates: Sequence[Candidate], known: VaultMemories, limit: int) -> set[int]:
    """Return the indexes of candidates over the limit of their session; they may only strengthen existing entries."""
    found: set[int] = set()
    for session in dict.fromkeys(candidate.session for candidate in candidates):
        waiting = known.waiting(session)
        # Proposals written before an interruption of the job are among those that wait.
        fresh = [
            index
            for index, candidate in enumerate(candidates)
            if candidate.session == session and not any(named.issuperset(candidate.records) for named in waiting)
        ]
        beyond = beyond_limit([candidates[index] for index in fresh], len(waiting), limit)
        found.update(fresh[place] for place in beyond)
    return found


@dataclass(frozen=True)
class CapturedIdea:
    """An idea that was captured on request; `appended`: a section was added to Ideas.md."""

    path: str
    is_new: bool
    appended: bool
    occurrences: int


def capture_idea(
    settings: Settings, journal: Journal, title: Scrubbed, summary: Scrubbed, *, session: str | None = None
) -> CapturedIdea:
    """Capture an idea on the user's request, in the vault and in Ideas.md; a known idea gets the evidence.

    Raises EditConflict, VaultUnavailable; nothing is written then.
    """
    store = journal.store
    run, stamp = journal.new_run("idea"), journal.stamp()
    source = Source(BY_COMMAND, session or "", (stamp,))
    text = str(summary)
    said = Candidate("idea", text, "you wrote it down", "user", (stamp,), text, session or "", confirmed=True)
    with journal.locked(), SemanticSimilarity(settings) as meaning:
        known = [
            entry
            for entry in VaultMemories(store, meaning).entries(said)
            if entry.kind == "idea" and not is_titled_otherwise(entry, str(title), str(summary))
        ]
        old = next((e for e in known if e.effective_status in ("incubating", "active")), None)
        if old is None:
            path = new_idea_path(store, str(title))
            text = store.compose(
                path,
                {
                    "kind": "idea",
                    "status": "incubating",
                    "group": DEFAULT_GROUP,
                    "slug": slug_of(path),
                    "fingerprint": fingerprint(str(summary)),
                    "occurrences": 1,
                    "source": [source],
                    "surfaced_in_session": session,
                    "surfaced_at": stamp,
                },
                title,
                Scrubbed.joined([summary, Scrubbed.trusted(LOOKED_UP, reason="our own words")]),
            )
            note = Change(path, None, text)
        else:
            path, before = old.path, old.text
            fields: dict[str, StoreValue] = {"occurrences": old.occurrences + 1, "source": [*old.sources, source]}
            if "surface" in old.extra:
                fields["surface"] = None  # The request answers the question, or overrides an earlier refusal.
            body = old.body
            if has_own_title(str(title), body) and body.startswith(f"# {old.title}\n"):
                body = body.replace(old.title, str(title), 1)  # The title of a mined idea is its first words.
            note = Change(path, before, store.render_edit(before, fields, _with_evidence(body, said)))
        changes = commit_idea(settings, journal, note, run=run, actor="idea", what=f"idea: {title}", requested=True)
    appended = any(is_outside(change.path) for change in changes)
    return CapturedIdea(path, old is None, appended, 1 if old is None else old.occurrences + 1)


def ideas_to_research(store: VaultStore, remembered: MemoryReport) -> list[str]:
    """Return the slugs of the ideas in `remembered` that have not been researched, including those of an earlier
    attempt."""
    paths = dict.fromkeys([*remembered.written, *(routed.destination for routed in remembered.routed)])
    found = store.readable(filter(is_idea_path, paths))
    return [slug_of(idea.path) for idea in found if "research" not in idea.extra]


def _route(candidate: Candidate, known: VaultMemories, settings: Settings) -> RoutedCandidate:
    score = shifted(candidate.score, known.shift(candidate))
    candidate = replace(candidate, score=score)
    if candidate.limit and not candidate.standing_rule:
        # Earlier decisions of the user raise or lower the probability of similar statements.
        candidate = replace(candidate, claimed_rule=score >= candidate.limit)
    return route(candidate, known, mode=settings.memory.review_mode)


class _Writer:
    """Applies routing decisions one by one, each as an act of the journal."""

    def __init__(
        self,
        settings: Settings,
        known: VaultMemories,
        journal: Journal,
        host: str,
        run: str,
        most_waiting: int | None,
    ) -> None:
        self.known = known
        self._most_waiting = most_waiting
        self.made_room = 0
        """Number of proposals of old sessions that went to the inbox to make room for more likely ones."""
        self._settings = settings
        self._store = journal.store
        self._journal = journal
        self._host = host
        self._run = run

    def within_room(self, decision: RoutedCandidate) -> RoutedCandidate:
        """Return the decision adjusted to the room left for old sessions. If there is none, the weakest proposal moves
        to the inbox, and the weakest note of the inbox is deleted."""
        most = self._most_waiting
        moves = decision.action is Action.WRITE or decision.supersedes is not None
        if most is None or decision.action is Action.NOTHING or not moves:
            return decision
        status = status_at(decision.destination)
        if status == "incubating":
            decided = decided_ideas(self._settings, self._store)
            undecided = sum(path not in decided for _, path in self.known.ranked(status))
            if decision.tier is not Tier.LOW and undecided < IDEAS_SHARE * most:
                return decision
            return replace(decision, action=Action.NOTHING, why=NO_ROOM)
        waiting = self.known.ranked(status)
        if status == "inbox" and not self._make_inbox_room((1, decision.candidate.score)):
            return replace(decision, action=Action.NOTHING, why=NO_ROOM)
        if status != "pending" or len(waiting) < most:
            return decision
        said = 1
        if decision.action is Action.STRENGTHEN:
            with suppress(EntryNotFound, EntryInvalid):
                said += self._store.read(decision.supersedes or decision.destination).occurrences
        weakest, path = waiting[0]
        if (said, decision.candidate.score) > weakest:
            self._put_into_inbox(path, weakest)
            self.made_room += 1
            return decision
        if decision.action is Action.STRENGTHEN:
            return replace(decision, destination=decision.supersedes or decision.destination, supersedes=None)
        if not self._make_inbox_room((said, decision.candidate.score)):
            return replace(decision, action=Action.NOTHING, why=NO_ROOM)
        return replace(decision, destination=f"{DEFAULT_GROUP}/{INBOX}/{decision.destination.rpartition('/')[2]}")

    def _make_inbox_room(self, rank: Rank) -> bool:
        """Delete the weakest note if the inbox is full and it ranks lower; return whether there is room."""
        assert self._most_waiting is not None
        waiting = self.known.ranked("inbox")
        if len(waiting) < INBOX_SHARE * self._most_waiting:
            return True
        weakest, path = waiting[0]
        if rank <= weakest:
            return False

        def attempt() -> None:
            before = text_of(self._store, path)
            change = Change(path, before, None)
            if before is not None:
                self._journal.commit([change], run=self._run, actor="reflection", what="gone: room for a likelier one")
            self.known.learned(path, None)

        retry_edit(attempt)
        return True

    def _put_into_inbox(self, path: str, rank: Rank) -> None:
        """Move a proposal to the inbox because a stronger one needs its place in the review."""

        def attempt() -> None:
            before = text_of(self._store, path)
            if before is None:
                return
            target = free_path(f"{DEFAULT_GROUP}/{INBOX}/{path.rpartition('/')[2]}", self._store)
            self._make_inbox_room(rank)
            text = self._store.render_edit(before, {"status": status_at(target)}, None)
            changes = [Change(target, None, text), Change(path, before, None)]
            self._journal.commit(changes, run=self._run, actor="reflection", what="moved on: room for a likelier one")
            for change in changes:
                self.known.learned(change.path, change.after)

        retry_edit(attempt)

    def _distinct(self, decision: RoutedCandidate) -> str:
        """The destination; if another note has that name, one with further words of the statement."""
        destination = inside_vault(decision.destination, self._store)
        if not self._store.exists(destination):
            return destination
        folder, _, name = destination.rpartition("/")
        return f"{folder}/{further_slug(name.removesuffix('.md'), decision.candidate.statement)}.md"

    def write(self, decision: RoutedCandidate) -> str:
        """Write a new entry and return its path. Ideas that only an agent mentioned can be found, but are not
        proposed."""
        candidate = decision.candidate
        idea = candidate.category == "idea"
        path = free_path(decision.destination if idea else self._distinct(decision), self._store)
        waits = status_at(path) != "active"
        # Scrubbed in the mining child; the type was lost on the way through the pipe.
        statement = _scrubbed(candidate.statement)
        text = self._store.compose(
            path,
            {
                "kind": candidate.kind,
                "status": status_at(path),
                "tags": _tags(candidate),
                "group": group_of(candidate),
                "slug": path.split("/")[-2] if idea else path.rsplit("/", 1)[-1].removesuffix(".md"),
                "always_load": False,
                "project": candidate.project if candidate.scope == "project" else None,
                "fingerprint": fingerprint(candidate.identity),
                "confidence": str(decision.tier),
                PROBABILITY: round(candidate.score, 3) if waits else None,
                BACKFILLED: True if waits and self._most_waiting is not None else None,
                "channel": candidate.channel or None,
                "occurrences": 1,
                "source": [self._source(candidate)],
                "surfaced_in_session": candidate.session if idea else None,
                "surfaced_at": self._surfaced_at(candidate),
                "supersedes": decision.supersedes,
                CONTRADICTS: self.known.fingerprint_of(decision.supersedes) if decision.supersedes else None,
            },
            # Without the agent's text that it answers: that is quoted below, and would take up the room.
            _scrubbed(replace(candidate, statement=own_words(statement) or statement).title),
            _scrubbed(_body(decision, statement)),
        )
        # Unasked, only what the user typed is put into a file outside the vault.
        may_list = candidate.confirmed or consent_of(self._settings) is None
        if idea and candidate.from_user and may_list:
            self._commit_idea(Change(path, None, text), decision)
        else:
            self._commit([Change(path, None, text)], decision, "written")
        return path

    def strengthen(self, decision: RoutedCandidate) -> str:
        """Add the evidence, and an occurrence if it is one; move an entry that has become certain or applies more
        widely.

        Returns the entry's path.
        """
        path = decision.supersedes or decision.destination

        def attempt() -> str:
            return self._strengthen(decision, self._store.read(path))

        return retry_edit(attempt)

    def _strengthen(self, decision: RoutedCandidate, entry: Entry) -> str:
        candidate = decision.candidate
        is_next = is_further_finding(candidate, {source.session for source in entry.sources if source.session})
        fields: dict[str, StoreValue] = {
            "occurrences": entry.occurrences + (not is_next),
            "source": _further(entry.sources, candidate) if is_next else [*entry.sources, self._source(candidate)],
        }
        if candidate.said_at is not None and candidate.said_at < (entry.surfaced_at or ""):
            fields["surfaced_at"] = candidate.said_at
            if candidate.category == "idea":
                fields["surfaced_in_session"] = candidate.session
        if (
            NOT_CONFIRMED_TAG in entry.tags
            and NOT_CONFIRMED_TAG not in _tags(candidate)
            and says_all_of(candidate, entry)
        ):
            fields |= {"tags": [tag for tag in entry.tags if tag != NOT_CONFIRMED_TAG]}
        if decision.widened:
            fields |= {"project": None, "group": DEFAULT_GROUP}
        if decision.supersedes is None:
            # A later finding of a session about the same problem is not a repetition: it may be the cause.
            is_more = candidate.category == "idea" or is_next or _is_other_wording(candidate, entry.body)
            body = _with_evidence(entry.body, candidate) if is_more else None
            self._commit(rewritten(entry, self._store.render_edit(entry.text, fields, body)), decision, "strengthened")
            return entry.path
        target = free_path(decision.destination, self._store)
        fields |= {"status": status_at(target)}
        if status_at(target) != entry.effective_status:
            fields |= {"confidence": str(decision.tier)}
        if status_at(target) == "active":
            fields |= {key: None for key in (PROBABILITY, CONTRADICTS, BACKFILLED) if key in entry.extra}
        if status_at(target) == "active" and not decision.widened:
            is_there = candidate.scope == "project" and decision.destination.startswith(f"{group_of(candidate)}/")
            fields |= {"project": candidate.project if is_there else None}
            fields |= {"group": group_of(candidate) if is_there else DEFAULT_GROUP}
        new_body = _in_own_words(entry.body) if decision.tier is Tier.HIGH else None
        if _is_other_wording(candidate, entry.body):
            new_body = _with_evidence(new_body or entry.body, candidate)
        text = self._store.render_edit(entry.text, fields, new_body)
        self._commit(rewritten(entry, text, target), decision, "moved on")
        return target

    def _commit_idea(self, note: Change, decision: RoutedCandidate) -> None:
        session = decision.candidate.session
        changes = commit_idea(
            self._settings,
            self._journal,
            note,
            run=self._run,
            actor="reflection",
            what="written: idea",
            session=session,
        )
        for change in changes:
            if not is_outside(change.path):
                self.known.learned(change.path, change.after)

    def _surfaced_at(self, candidate: Candidate) -> str | None:
        """Return when it was said: what is mined from old sessions is not new, though its note (`created`) is.

        If the transcript does not say, or its clock was ahead, an idea counts as new, and for other kinds it is
        unknown.
        """
        now = self._journal.stamp()
        if candidate.said_at is not None and candidate.said_at <= now:
            return candidate.said_at
        return now if candidate.category == "idea" else None

    def _source(self, candidate: Candidate) -> Source:
        return Source(self._host, candidate.session, candidate.records, candidate.said_at or "")

    def _commit(self, changes: Sequence[Change], decision: RoutedCandidate, what: str) -> None:
        self._journal.commit(
            changes,
            run=self._run,
            actor="reflection",
            what=f"{what}: {decision.candidate.category}",
            session=decision.candidate.session,
        )
        for change in changes:
            self.known.learned(change.path, change.after)


def _further(sources: Sequence[Source], candidate: Candidate) -> list[Source]:
    """Add the candidate's records to those of its session: undo takes back one occurrence per source."""
    at = max(place for place, source in enumerate(sources) if source.session == candidate.session)
    records = tuple(dict.fromkeys((*sources[at].records, *candidate.records)))
    return [*sources[:at], replace(sources[at], records=records), *sources[at + 1 :]]


def free_path(destination: str, store: VaultStore) -> str:
    """Return the destination, or the next free name beside it.

    Raises VaultUnavailable while an editor saves the file at the destination, which may hold this very memory.
    """
    destination = inside_vault(destination, store)
    if f"/{INCUBATOR}/" in f"/{destination}":
        folder, slug, name = destination.rsplit("/", 2)
        return f"{folder}/{free_slug(slug, lambda taken: store.is_taken(f'{folder}/{taken}'))}/{name}"
    if store.is_being_saved(destination):
        raise VaultUnavailable(f"{destination} is being saved by another program; try again in a moment")
    folder, name = destination.rsplit("/", 1)
    slug = free_slug(name.removesuffix(".md"), lambda taken: store.exists(f"{folder}/{taken}.md"))
    return f"{folder}/{slug}.md"


def inside_vault(destination: str, store: VaultStore) -> str:
    """Return the destination, or one among the user's own notes if the project's folder is a link out of the vault.

    Nothing is written through such a link. A property of the note names the project.
    """
    root, _, rest = destination.partition("/")
    project, _, inside = rest.partition("/")
    if root != PROJECTS or not inside:
        return destination
    try:
        resolve_inside(store.vault, f"{root}/{project}")
    except PathRefused as error:
        log.warning("%s: written to %s instead", error, DEFAULT_GROUP)
        return f"{DEFAULT_GROUP}/{inside}"
    return destination


def _with_evidence(body: str, candidate: Candidate) -> Scrubbed:
    """Return a note's text with one more quoted passage."""
    heading = "" if f"\n## {EVIDENCE_HEADING}\n" in f"\n{body}\n" else f"\n\n## {EVIDENCE_HEADING}"
    return _scrubbed(f"{body}{heading}\n\n{_quoted(candidate)}\n\n{_said_in(candidate)}")


def _in_own_words(body: str) -> Scrubbed | None:
    """Return a note's text without what its statement quotes of the agent; None if it quotes nothing."""
    told = statement_of(body)
    own = own_words(told)
    return _scrubbed(body.replace(told, own, 1)) if own != told and told in body else None


def _is_other_wording(candidate: Candidate, body: str) -> bool:
    """Whether the user's wording is not in the note yet; the reviewer may prefer it."""
    said = " ".join(own_words(candidate.statement).lower().split()).rstrip(".!")
    has_room = body.count(f"\n{SESSION}") < MOST_WORDINGS
    return candidate.from_user and has_room and said not in f"{statement_of(body)} {quotes_of(body)}".lower()


def _said_in(candidate: Candidate) -> str:
    return f"{SESSION}{candidate.session}" if candidate.session else f"{candidate.reason}, {candidate.records[0]}"


def _quoted(candidate: Candidate) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in candidate.excerpt.strip().splitlines())
    # Research follows the links of an idea only if the user typed them.
    is_typed = candidate.from_user and candidate.confirmed
    return f"{NOT_TYPED}\n\n{quoted}" if candidate.category == "idea" and not is_typed else quoted


def _body(decision: RoutedCandidate, statement: str) -> str:
    candidate = decision.candidate
    quoted = _quoted(candidate)
    lines = [statement, ""]
    if decision.tier is not Tier.HIGH and decision.supersedes:
        lines += [replacement_line(decision.supersedes), ""]
    # This sentence about the first occurrence stays in the note when more occurrences are added.
    done = "Saved" if status_at(decision.destination) == "active" else "Proposed"
    reasons = dict.fromkeys([candidate.reason, "at first " * (decision.why == ONE_OCCURRENCE) + decision.why])
    why = f"{done} because: {'; '.join(reasons)}."
    said_upon = [f"{SAID}{candidate.occasion}", ""] if candidate.occasion else []
    lines += [f"## {EVIDENCE_HEADING}", "", why, "", *said_upon, quoted, "", f"{SESSION}{candidate.session}"]
    if candidate.category == "idea":
        lines += ["", LOOKED_UP]
    return "\n".join(lines)


def _tags(candidate: Candidate) -> list[str]:
    tags = ["correction"] if candidate.category == "correction" else []
    if candidate.category != "idea" and not (candidate.from_user and candidate.confirmed):
        tags.append(NOT_CONFIRMED_TAG)
    return tags


def _scrubbed(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="the mining child scrubbed every part of it")
