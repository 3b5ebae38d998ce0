"""Evaluate found patterns (adapt.evaluate): each becomes a note on the watchlist, or nothing.

The note says in our own words what to adopt and why. `Watchlist.propose` writes it and can write nothing else.
A pattern that has a note, waiting or dismissed, is never proposed again, even if the state folder is deleted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...pipelines.adaptation import DEFAULT_TRUSTED, Confidence, Facts, Judgement, UserSetup, judge
from ...pipelines.discovery import Pattern, SourcesNote, parse_sources
from ...pipelines.originality import find_copy
from ...pipelines.scrub import Policy, scrub
from ...pipelines.second_opinion import MAX_OUTPUT_TOKENS, SCHEMA, SYSTEM, Opinion, opinion_in, prompt_for
from ...pipelines.url_identity import canonical_url, repository_of
from ...pipelines.watchlist import note_body, shown_name
from ...runtime.days import SECONDS_PER_DAY, parse_local_day
from ...runtime.errors import EntryExists, EntryInvalid, EntryNotFound
from ...runtime.layout import ALWAYS_LOAD, META, SKILLS, expand_home
from ...runtime.settings import Settings
from ...runtime.slug import title_slug
from ...sources.completion import Completer, CompletionFailed, CompletionRequest
from ...sources.discovery.github import repository_address, text_address
from ...sources.discovery.skill_folder import skill_text
from ...vault.entry import Entry, parse_entry
from ...vault.fields import StoreValue
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..completion import ask_within, completer_of
from ..cursors import Cursors
from ..spending import BudgetRefused, Cap, SpendingBook
from ..stores import vault_store
from .fetch_child import MAX_TEXT_CHARACTERS, Fetch, FetchRequest, FetchResult
from .found_patterns import FoundPatterns
from .politeness import AskedHost
from .watchlist import CopyRefused, Watchlist

log = logging.getLogger(__name__)

SOURCES_NOTE = f"{META}/skill-discovery-sources.md"
TRUSTED_NOTE = f"{META}/trusted-owners.md"
TRUSTED_TITLE = "Trusted owners"
TRUSTED_BODY = """\
Owners on GitHub whose skills you look at with more trust. One a line; add and remove as you like.

{owners}
"""
SLUG_CHARACTERS = 60
PATTERNS_PER_RUN = 20
"""The most patterns that one run evaluates, best first."""
MODEL_SECONDS = 120.0
FACTS_SECONDS = 7 * SECONDS_PER_DAY
"""Lookups are cached, so a repository with a hundred skills is looked up once: GitHub allows 60 requests an hour."""


@dataclass(frozen=True)
class AdaptationOutcome:
    """The result for a pattern. If no note was written, `path` is None and `detail` says why."""

    pattern: Pattern
    slug: str
    judgement: Judgement | None
    path: str | None
    detail: str = ""


def identity(pattern: Pattern) -> Scrubbed:
    """Return the identity of a pattern's note: the canonical address, plus the key if an address has several patterns.

    It is scrubbed as in the note; otherwise a pattern whose address holds a secret would not be recognised.
    """
    return scrub(f"{canonical_url(pattern.url) or pattern.url} {pattern.key}", Policy.SECRETS)


class Adaptation:
    """Evaluates the found patterns of one vault."""

    def __init__(
        self,
        settings: Settings,
        store: VaultStore | None = None,
        *,
        fetch: Fetch | None,
        completer: Completer | None = None,
    ) -> None:
        """`fetch` None: repositories are not looked up. `completer` None: there is no second pass."""
        self.store = store or vault_store(settings)
        self.found = FoundPatterns(settings.state.state_db)
        self.watchlist = Watchlist(settings, self.store)
        self._settings = settings
        self._fetch = fetch
        self._completer = completer
        self._hosts = Cursors(settings.state.state_db, "discovery")
        self._facts_known = Cursors(settings.state.state_db, "facts")
        self._run = self.watchlist.journal.new_run("adaptation")

    def seed(self) -> bool:
        """Write the note of trusted owners if there is none; return whether it was written. Raises VaultUnavailable."""
        body = TRUSTED_BODY.format(owners="\n".join(f"- {owner}" for owner in DEFAULT_TRUSTED))
        return seed_note(self.store, TRUSTED_NOTE, TRUSTED_TITLE, body)

    def ranked(self) -> list[Pattern]:
        """Return the waiting patterns, most promising first; those that have a note already are marked as done."""
        proposed, today, scored = self.watchlist.proposed(), self.store.today(), []
        for pattern in self.found.waiting():
            if identity(pattern) in proposed:
                self.found.judge(pattern.key, "proposed")
                continue
            # As if its text was judged, so that a trusted owner's weaker ones do not come before a stranger's best.
            judgement = judge(pattern, self.held, None, today, is_text_judged=True)
            rank = (-judgement.confidence, not judgement.trusted, -judgement.score)
            scored.append((rank, pattern.source, pattern.key, pattern))
        return [pattern for *_, pattern in sorted(scored, key=lambda row: row[:3])]

    @cached_property
    def held(self) -> UserSetup:
        """What the user has already."""
        return held_by(self.store)

    def evaluate(self, pattern: Pattern, still_owned: Callable[[], bool] = lambda: True) -> AdaptationOutcome:
        """Evaluate one pattern and write its note if it is worth one. Raises VaultUnavailable."""
        slug = title_slug(pattern.title, SLUG_CHARACTERS, fallback="pattern")

        def ended(
            detail: str, judgement: Judgement | None, verdict: str = "", path: str | None = None
        ) -> AdaptationOutcome:
            if verdict:
                self.found.judge(pattern.key, verdict)
            return AdaptationOutcome(pattern, slug, judgement, path, detail)

        if identity(pattern) in self.watchlist.proposed():
            return ended("it has a note already", None, "proposed")
        today, low = self.store.today(), Confidence.LOW
        judgement = judge(pattern, self.held, None, today)
        if judgement.confidence is low:  # No fact about the repository can raise it, so no request is made.
            return ended("not worth a note", judgement, low.name)
        facts = self._facts(pattern)
        judgement = judge(pattern, self.held, facts, today)
        if judgement.confidence is low:
            return ended("not worth a note", judgement, low.name)
        opinion, text = self._second_opinion(pattern)
        if opinion is not None:
            judgement = judge(pattern, self.held, facts, today, is_text_judged=bool(text) or opinion.lowers)
            judgement = lowered(judgement) if opinion.lowers else judgement
            if judgement.confidence is low:
                return ended("not worth a note, says the model", judgement, low.name)
        if not still_owned():
            return ended("the job is no longer ours", judgement)
        try:
            with self.store.lock():
                path = self._write(pattern, slug, judgement, facts, opinion, text)
        except (CopyRefused, EntryInvalid, EntryExists) as error:
            log.warning("%s", error)
            return ended(str(error), judgement, "refused")
        return ended("", judgement, judgement.confidence.name, path)

    def _write(
        self, pattern: Pattern, slug: str, judgement: Judgement, facts: Facts | None, opinion: Opinion | None, text: str
    ) -> str:
        made_from = [pattern.description, text]
        advice = () if opinion is None else opinion.adopt
        # The summary alone, too: next to our own words a copied line would be a small share.
        body = note_body(judgement, facts, safe_address(pattern.url), advice)
        if advice and (copied := find_copy("\n".join(advice), made_from) or find_copy(body, made_from)):
            log.warning("the model's words are left out: %s", copied)
            body = note_body(judgement, facts, safe_address(pattern.url))
        fields: dict[str, StoreValue] = {
            "status": "pending",
            "confidence": scrub(judgement.confidence.name),
            "score": judgement.score,
            "rules": [Scrubbed.trusted(rule.id, reason="our own words") for rule in judgement.rules],
            "identity": identity(pattern),
            "trusted_owner": judgement.trusted,
        }
        return self.watchlist.propose(
            pattern.source,
            self.watchlist.free_name(pattern.source, slug),
            fields,
            scrub(shown_name(pattern.title), Policy.SECRETS),
            scrub(body, Policy.SECRETS),
            made_from=made_from,
            run=self._run,
        )

    def _second_opinion(self, pattern: Pattern) -> tuple[Opinion | None, str]:
        """Return (the model's opinion, the text it was shown); None if it cannot be asked, and the first pass
        stands."""
        if self._completer is None or self._fetch is None:
            return None, ""
        address, text = text_address(pattern.url), self._local_text(pattern)
        if address is not None:
            result = self._ask(FetchRequest("text", address))
            text = text if result is None else result.text
        caps = (Cap("tokens", self._settings.discovery.daily_token_cap, "day"),)
        book = SpendingBook(self._settings.state.state_db, "adaptation")
        prompt = scrub(prompt_for(pattern, text))
        request = CompletionRequest(prompt, SYSTEM, SCHEMA, MAX_OUTPUT_TOKENS, MODEL_SECONDS)
        try:
            completion = ask_within(caps, book, pattern.key, self._completer, request)
        except (BudgetRefused, CompletionFailed) as error:
            log.warning("no second opinion on %s: %s", pattern.key, error)
            return None, text
        return opinion_in(completion.value), text

    def _ask(self, request: FetchRequest) -> FetchResult | None:
        """Return the response; None if requests are off or the host is to be left alone."""
        return None if self._fetch is None else AskedHost(self._hosts, request.url).ask(self._fetch, request)

    def _local_text(self, pattern: Pattern) -> str:
        """Return the SKILL.md of a pattern in a local folder that the user named; '' for any other."""
        if not pattern.url.startswith("file:"):
            return ""
        for source in sources_of(self.store).sources:
            if source.kind == "folder" and not source.address and source.slug == pattern.source:
                folder = Path(expand_home(source.target, self._settings.environment))
                return skill_text(pattern.url, folder)[:MAX_TEXT_CHARACTERS]
        return ""

    def _facts(self, pattern: Pattern) -> Facts | None:
        """Return GitHub's facts about the repository; None if it has none or cannot be asked now."""
        repository = repository_of(pattern.url)
        if repository is None or self._fetch is None:
            return None
        name = "/".join(repository)
        known = self._facts_known.get(name)
        if known is not None and 0 <= time.time() - float(known["at"]) < FACTS_SECONDS:
            return facts_from(known["facts"])
        url = repository_address(self._settings.discovery.github_api, *repository)
        result = self._ask(FetchRequest("facts", url))
        if result is None or result.problem or not result.facts:
            return None
        self._facts_known.set(name, {"at": time.time(), "facts": dict(result.facts)})
        return facts_from(result.facts)


def lowered(judgement: Judgement) -> Judgement:
    """Return the judgement with its confidence lowered one step by the model."""
    before = judgement.confidence
    why = f"it was {before.name} before the model that was asked said it is worth less"
    return replace(judgement, confidence=Confidence(max(0, before - 1)), moved=(*judgement.moved, why))


def model_for(settings: Settings) -> Completer | None:
    """Return the model for the second pass if it is enabled. Raises SettingsError."""
    wanted = settings.discovery.ask_model and settings.discovery.daily_token_cap > 0
    return completer_of(settings) if wanted else None


def facts_from(value: Mapping[str, Any]) -> Facts:
    """Return the facts as the child printed them."""
    return Facts(**{**value, "pushed": parse_local_day(value["pushed"])})


def safe_address(url: str) -> str:
    """Return an address that is safe between `<` and `>`: no white space, bracket, quote or control character."""
    return "".join(c for c in url if c.isprintable() and c not in "<>\"'`[]()|\\ ")[:500]


def held_by(store: VaultStore) -> UserSetup:
    """Return what the vault has already: skills, always-load entries, trusted owners. Raises VaultUnavailable."""
    skills: set[str] = set()
    always: set[str] = set()
    for path, data in store.contents():
        if path.startswith(f"{SKILLS}/"):
            skills.add(path.rsplit("/", 1)[-1].removesuffix(".md"))
        elif f"/{ALWAYS_LOAD}/" in f"/{path}":
            entry = parse_entry(path, data)
            always |= {entry.slug, *entry.tags}
    trusted: set[str] = set(DEFAULT_TRUSTED)
    with suppress(EntryNotFound, EntryInvalid):
        trusted = set(owners_in(store.read(TRUSTED_NOTE)))
    return UserSetup(frozenset(skills), frozenset(always), frozenset(trusted))


def owners_in(entry: Entry) -> list[str]:
    """Return the owners listed in the note, in lower case."""
    lines = (
        line.strip().lstrip("-*+ ").strip("`@ ").casefold()
        for line in entry.body.splitlines()
        if line.strip()[:1] in "-*+"
    )
    return [line for line in lines if line and all(c.isascii() and (c.isalnum() or c == "-") for c in line)]


def is_confirmed(settings: Settings) -> bool:
    """Whether the user has confirmed the sources; otherwise no request is made."""
    return sources_of(vault_store(settings)).confirmed


def sources_of(store: VaultStore) -> SourcesNote:
    """Return the user's note of sources; an empty one if it is missing or cannot be read."""
    try:
        entry = store.read(SOURCES_NOTE)
    except (EntryNotFound, EntryInvalid):
        return parse_sources("", None)
    return parse_sources(entry.body, entry.extra.get("confirmed"))


def seed_note(
    store: VaultStore, path: str, title: str, body: str, further: Mapping[str, StoreValue] = MappingProxyType({})
) -> bool:
    """Write a note of settings if there is none; return whether it was written. Raises VaultUnavailable."""
    fields: dict[str, StoreValue] = {"kind": "settings", "slug": None, "always_load": None, "status": None, **further}
    own_title, own_body = (Scrubbed.trusted(text, reason="our own text") for text in (title, body))
    with suppress(EntryExists):
        store.create(path, fields, own_title, own_body)
        return True
    return False
