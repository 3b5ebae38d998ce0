"""Candidates become entries: the acting half of routing.

Everything here happens under the vault's lock and is keyed by evidence, so that doing it again changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..pipelines.candidate import Candidate
from ..pipelines.routing import (
    Action,
    Known,
    RoutedCandidate,
    Thresholds,
    Tier,
    group_of,
    review_mode,
    route,
    status_at,
)
from ..vault.entry import Entry, Source, fingerprint
from ..vault.errors import EditConflict, EntryNotFound
from ..vault.layout import INCUBATOR
from ..vault.registry import find_by_fingerprints
from ..vault.scrubbed import Scrubbed
from ..vault.settings import Settings
from ..vault.slug import free_slug
from ..vault.store import StoreValue, VaultStore
from .kinds import Json

ATTEMPTS_AT_EDITED_FILE = 3
LIVE_FIRST = ("active", "pending", "incubating", "inbox")


@dataclass(frozen=True)
class Remembered:
    """What became of the candidates of one reading."""

    routed: tuple[RoutedCandidate, ...] = ()
    written: tuple[str, ...] = ()
    """Paths that are new or changed."""
    counts: dict[str, Json] = field(default_factory=dict)


class VaultMemories:
    """What the vault knows about some candidates: one pass over its headers, kept up as entries are written."""

    def __init__(self, store: VaultStore, candidates: Iterable[Candidate]) -> None:
        prints = sorted({fingerprint(candidate.statement) for candidate in candidates})
        self._entries = {key: list(found) for key, found in find_by_fingerprints(store, prints).items()}

    def entries(self, candidate: Candidate) -> list[Entry]:
        """Every entry with this statement."""
        return self._entries.get(fingerprint(candidate.statement), [])

    def same(self, candidate: Candidate) -> Sequence[Known]:
        """See KnownMemories."""
        known = [
            Known(
                path=entry.path,
                status=entry.effective_status,
                occurrences=entry.occurrences,
                records=frozenset(record for source in entry.sources for record in source.records),
            )
            for entry in self.entries(candidate)
        ]
        rank = {status: place for place, status in enumerate(LIVE_FIRST)}
        return sorted(known, key=lambda one: (rank.get(one.status, len(rank)), one.path))

    def reversed_rule(self, candidate: Candidate) -> str | None:
        """See KnownMemories. The same rule with the opposite first word."""
        del candidate
        return None

    def learned(self, entry: Entry, before: str | None = None) -> None:
        """An entry was written, in the place of the one at `before`."""
        found = self._entries.setdefault(entry.fingerprint or "", [])
        found[:] = [other for other in found if other.path not in (entry.path, before)]
        found.append(entry)


def preview(candidates: Sequence[Candidate], store: VaultStore, settings: Settings) -> tuple[RoutedCandidate, ...]:
    """What `remember` would do, each candidate for itself; nothing is written."""
    known = VaultMemories(store, candidates)
    return tuple(_route(candidate, known, settings) for candidate in candidates)


def remember(candidates: Sequence[Candidate], store: VaultStore, settings: Settings, *, host: str) -> Remembered:
    """Write, strengthen or pass over each candidate. Call it under `store.lock()`."""
    if not candidates:
        return Remembered()
    known = VaultMemories(store, candidates)
    routed: list[RoutedCandidate] = []
    written: list[str] = []
    counts: Counter[str] = Counter()
    for candidate in candidates:
        decision = _route(candidate, known, settings)
        routed.append(decision)
        match decision.action:
            case Action.NOTHING:
                counts["known"] += 1
            case Action.STRENGTHEN:
                written.append(_strengthen(decision, known, store, host))
                counts["strengthened"] += 1
            case Action.WRITE:
                entry = _write(decision, store, host)
                known.learned(entry)
                written.append(entry.path)
                counts[_destination_name(decision)] += 1
    return Remembered(tuple(routed), tuple(dict.fromkeys(written)), dict(counts))


def _route(candidate: Candidate, known: VaultMemories, settings: Settings) -> RoutedCandidate:
    return route(
        candidate,
        known,
        mode=review_mode(settings.memory.review_mode),
        thresholds=Thresholds(review_occurrences=settings.reflection.review_occurrences),
    )


def _destination_name(decision: RoutedCandidate) -> str:
    return {"active": "saved", "pending": "for_review", "inbox": "inboxed", "incubating": "ideas"}[
        status_at(decision.destination)
    ]


def _write(decision: RoutedCandidate, store: VaultStore, host: str) -> Entry:
    candidate = decision.candidate
    path = _free_path(decision.destination, store)
    source = Source(host or "claude", candidate.session, candidate.records)
    idea = candidate.category == "idea"
    # Scrubbed where it was mined; the type was lost on the way through the pipe.
    statement = _scrubbed(candidate.statement)
    return store.create(
        path,
        {
            "kind": candidate.kind,
            "status": status_at(path),
            "tags": _tags(candidate),
            "group": group_of(candidate),
            "slug": path.split("/")[-2] if idea else path.rsplit("/", 1)[-1].removesuffix(".md"),
            "always_load": False,
            "project": candidate.project if candidate.scope == "project" else None,
            "fingerprint": fingerprint(candidate.statement),
            "confidence": str(decision.tier),
            "occurrences": 1,
            "source": [source],
            "surfaced_in_session": candidate.session if idea else None,
            "supersedes": decision.supersedes,
        },
        title=_scrubbed(candidate.title),
        body=_scrubbed(_body(decision, statement)),
    )


def _strengthen(decision: RoutedCandidate, known: VaultMemories, store: VaultStore, host: str) -> str:
    """One more occurrence and its evidence; an inbox entry that is sure enough now moves on."""
    candidate = decision.candidate
    promoted_from = decision.supersedes
    path = promoted_from or decision.destination
    for attempt in range(ATTEMPTS_AT_EDITED_FILE):
        entry = store.read(path)
        source = Source(host or "claude", candidate.session, candidate.records)
        fields: dict[str, StoreValue] = {"occurrences": entry.occurrences + 1, "source": [*entry.sources, source]}
        try:
            if promoted_from is None:
                entry = store.update(path, entry.content_hash, fields=fields)
                known.learned(entry)
                return entry.path
            target = _free_path(decision.destination, store)
            fields |= {"status": status_at(target), "confidence": str(decision.tier)}
            entry = store.move(path, target, entry.content_hash, fields=fields)
            known.learned(entry, before=path)
            return entry.path
        except (EditConflict, EntryNotFound):
            # A person saved the note in this very moment: look at it again.
            if attempt == ATTEMPTS_AT_EDITED_FILE - 1:
                raise
    raise AssertionError("unreachable")


def _free_path(destination: str, store: VaultStore) -> str:
    """The destination, or the next free name beside it."""
    if f"/{INCUBATOR}/" in f"/{destination}":
        folder, slug, name = destination.rsplit("/", 2)
        return f"{folder}/{free_slug(slug, lambda taken: store.exists(f'{folder}/{taken}/{name}'))}/{name}"
    folder, name = destination.rsplit("/", 1)
    slug = free_slug(name.removesuffix(".md"), lambda taken: store.exists(f"{folder}/{taken}.md"))
    return f"{folder}/{slug}.md"


def _body(decision: RoutedCandidate, statement: str) -> str:
    candidate = decision.candidate
    quoted = "\n".join(f"> {line}".rstrip() for line in candidate.excerpt.strip().splitlines())
    lines = [statement, "", f"**Why:** {candidate.reason}; {decision.why}.", ""]
    if decision.tier is not Tier.HIGH and decision.supersedes:
        lines += [f"It would replace [[{decision.supersedes.removesuffix('.md')}]].", ""]
    lines += ["## Evidence", "", quoted, "", f"Session {candidate.session}"]
    return "\n".join(lines)


def _tags(candidate: Candidate) -> list[str]:
    return [candidate.category] if candidate.category in ("correction",) else []


def _scrubbed(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="the mining child scrubbed every part of it")
