"""Turn what an agent wants remembered into a proposal for the user, never into an entry.

The note has `source: agent`, lies in `_review/`, and is never always-load. What the vault has already, or the user has
rejected, is not proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..pipelines.candidate import KIND_OF_CATEGORY
from ..pipelines.incubation import GC_KIND, SURFACE_KIND
from ..pipelines.likeness import statement_of
from ..pipelines.review import group_of
from ..pipelines.routing import PUT_AWAY_STATUSES
from ..pipelines.scrub import scrub
from ..runtime.errors import UsageError
from ..runtime.layout import DEFAULT_GROUP, REVIEW
from ..runtime.settings import Settings
from ..runtime.slug import slugify, title_slug, validate_name
from ..vault.automemory import COST_KIND, INDEX_KIND, TOPIC_KIND
from ..vault.automemory import FOLDER as TOPICS_FOLDER
from ..vault.entry import AGENT_SOURCE, DASHBOARD_KIND, PATTERN_KIND, RESEARCH_KIND, SKILL_KIND, fingerprint
from ..vault.evidence import EVIDENCE_HEADING
from ..vault.note_text import replacement_line
from ..vault.render import RULE_KINDS
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import cut
from .entry_names import find_by_fingerprint, refuse_secrets, require_living, resolve_entry
from .evolving import says_already
from .ideas.ledger import is_titled_otherwise
from .journal import Change, Journal
from .remembering import free_path
from .stores import vault_store

MOST_WAITING = 50
"""How many proposals of agents may wait at once, so that a loop does not bury the user's own."""
MOST_CHARACTERS = 20_000
RESERVED_KINDS = frozenset(
    {COST_KIND, INDEX_KIND, TOPIC_KIND, TOPICS_FOLDER, RESEARCH_KIND, SKILL_KIND, SURFACE_KIND, GC_KIND, DASHBOARD_KIND}
    | {PATTERN_KIND}
)
"""Kinds that only the program writes, and the folder of topics: an approved note of one of them would count as a cost
or a topic, be asked as a question, be quoted as third-party text, or be kept from prompts."""
TITLE_CHARACTERS, EVOLVED_TITLE_CHARACTERS = 200, 90


@dataclass(frozen=True)
class ProposalFields:
    """Fields of the proposed entry besides title and text."""

    slug: str | None = None
    """None: made from the title."""
    tags: Sequence[str] = ()
    group: str | None = None
    project: str | None = None
    replaces: str | None = None
    """Path or slug of the entry to supersede."""
    reason: str = ""


NO_FIELDS = ProposalFields()


@dataclass(frozen=True)
class ProposalOutcome:
    """The result: the proposal waits, an entry says it already, or the user has rejected it."""

    verdict: Literal["waits for review", "known already", "rejected before"]
    path: str


class AgentProposals:
    """Proposals of agents to one vault."""

    def __init__(self, settings: Settings, store: VaultStore | None = None, journal: Journal | None = None) -> None:
        self._store = store or vault_store(settings)
        self._journal = journal or Journal(settings.state, self._store)

    def propose(self, kind: str, title: str, text: str, fields: ProposalFields = NO_FIELDS) -> ProposalOutcome:
        """Add a proposal to the review.

        Raises UsageError, EntryInvalid, EntryNotFound, VaultUnavailable; nothing is written then.
        """
        if validate_name("kind", kind) in RESERVED_KINDS:
            use = f"use {', '.join(sorted({*KIND_OF_CATEGORY.values(), *RULE_KINDS}))} or another word"
            raise UsageError(f"notes of the kind {kind!r} are written by MemoryVault itself: {use}")
        heading, body = " ".join(title.split()), text.strip()
        if not heading or not body:
            raise UsageError("a memory needs a title and a text")
        if len(body) > MOST_CHARACTERS or len(heading) > TITLE_CHARACTERS:
            raise UsageError(f"at most {MOST_CHARACTERS} characters of text and {TITLE_CHARACTERS} of title")
        scrubbed = scrub(body)
        key = fingerprint(statement_of(str(scrubbed)))
        return self.propose_scrubbed(kind, scrub(heading), scrubbed, fields, key=key)

    def propose_evolved(self, old: str, text: str, reason: str) -> ProposalOutcome:
        """Propose a new text for the entry at `old`, which replaces it when approved.

        The title is new, too, because the old title may say the opposite. Raises as `propose` does.
        """
        entry = self._store.read(old)
        if entry.kind in RESERVED_KINDS:
            raise UsageError(f"{old} is written by MemoryVault itself and cannot be changed by proposals")
        first, _, rest = text.strip().partition("\n")
        has_heading = first.startswith("# ") and bool(rest.strip())
        title = first[2:] if has_heading else cut(statement_of(text.strip()), EVOLVED_TITLE_CHARACTERS).rstrip(".")
        fields = ProposalFields(slugify(entry.slug), entry.tags, project=entry.project, replaces=old, reason=reason)
        return self.propose(entry.kind or "note", title, rest if has_heading else text, fields)

    def propose_scrubbed(
        self,
        kind: str,
        title: Scrubbed,
        text: Scrubbed,
        fields: ProposalFields = NO_FIELDS,
        *,
        key: str,
    ) -> ProposalOutcome:
        """Propose a scrubbed text under the fingerprint `key`, which identifies the proposal."""
        refuse_secrets(kind, fields.slug, fields.group, fields.project)
        wanted = validate_name("slug", fields.slug) if fields.slug else title_slug(str(title))
        group = group_of(fields.group, fields.project)
        with self._journal.locked():
            old = resolve_entry(self._store, fields.replaces) if fields.replaces else None
            if old is not None and says_already(require_living(self._store, old), str(text)):
                return ProposalOutcome("known already", old)
            for entry in find_by_fingerprint(self._store, key):
                if kind == "idea" and is_titled_otherwise(entry, str(title), str(text)):
                    continue
                if entry.effective_status in ("rejected", "dismissed"):
                    return ProposalOutcome("rejected before", entry.path)
                if entry.effective_status not in PUT_AWAY_STATUSES and entry.path != old:
                    return ProposalOutcome("known already", entry.path)
            in_review = (each for each in self._store.walk() if f"/{REVIEW}/" in f"/{each}")
            waiting = sum(entry.written_by_agent for entry in self._store.readable(in_review))
            if waiting >= MOST_WAITING:
                raise UsageError(f"{waiting} proposals of agents wait already: the user decides on some first")
            path = free_path(f"{DEFAULT_GROUP}/{REVIEW}/{wanted}.md", self._store)
            note = self._store.compose(
                path,
                {
                    "kind": kind,
                    "status": "pending",
                    "tags": [slugify(str(scrub(tag))) for tag in fields.tags if tag.strip()],
                    "group": group,
                    "slug": path.rsplit("/", 1)[-1].removesuffix(".md"),
                    "always_load": False,
                    "project": fields.project,
                    "fingerprint": key,
                    "confidence": "MEDIUM",
                    "occurrences": 1,
                    "source": AGENT_SOURCE,
                    "supersedes": old,
                },
                title,
                _body(text, old, scrub(" ".join(fields.reason.split()))),
            )
            self._journal.commit(
                [Change(path, None, note)],
                run=self._journal.new_run("agent"),
                actor="agent",
                what=f"proposed: {kind}",
            )
        return ProposalOutcome("waits for review", path)


def _body(text: Scrubbed, replaces: str | None, reason: Scrubbed) -> Scrubbed:
    parts = [text]
    if replaces is not None:
        parts.append(Scrubbed.trusted(replacement_line(replaces), reason="a path of the vault"))
    why = f": {reason}" if reason else "."
    parts.append(
        Scrubbed.trusted(f"## {EVIDENCE_HEADING}\n\nProposed by an agent{why}", reason="our words and scrubbed ones")
    )
    return Scrubbed.joined(parts)
