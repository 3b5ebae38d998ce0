"""Look for new patterns in the sources that the user has confirmed.

The sources are listed in a note; no request is made before it says `confirmed: true`. Findings are stored before the
source's cursor moves, under stable keys, so that a scan that was killed finds the same again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from ...pipelines.discovery import (
    SOURCES_BODY,
    SOURCES_TITLE,
    Pattern,
    Source,
    SourcesNote,
    novelty,
    parse_sources,
    remembered,
)
from ...runtime.days import local_day
from ...runtime.errors import MemoryVaultError, UsageError
from ...runtime.layout import expand_home
from ...runtime.settings import Settings
from ...sources.discovery.github import raw_address, search_address, tree_address
from ...vault.frontmatter import find_fault
from ...vault.store import VaultStore
from ...vault.wording import counted
from ..cursors import Cursors
from ..stores import vault_store
from .adapting import SOURCES_NOTE, seed_note, sources_of
from .fetch_child import Fetch, FetchRequest, FetchResult
from .found_patterns import FoundPatterns
from .politeness import AskedHost

TOPIC_DAYS = 90
"""Repositories with a topic count as new if they were created within this time."""

State = Literal["fetched", "error", "waiting"]


class NotConfirmed(MemoryVaultError):
    """The user has not confirmed the sources."""


@dataclass(frozen=True)
class SourceReport:
    """The result for one source. `baseline`: the number of patterns that a first scan recorded as known."""

    source: Source
    state: State
    new: tuple[Pattern, ...] = ()
    listed: int = 0
    baseline: int = 0
    detail: str = ""
    again_at: float | None = None
    """Unix seconds: when its host may be asked again, if it was left alone."""


@dataclass(frozen=True)
class ScanReport:
    """The results of one scan."""

    sources: tuple[SourceReport, ...] = ()
    problems: tuple[str, ...] = ()
    """Lines of the note that are not sources."""

    @property
    def again_at(self) -> float | None:
        """Unix seconds: the earliest time at which a host that was left alone may be asked."""
        return min((report.again_at for report in self.sources if report.again_at is not None), default=None)

    def count(self, state: State) -> int:
        """Return the number of sources in this state."""
        return sum(report.state == state for report in self.sources)

    @property
    def new(self) -> tuple[Pattern, ...]:
        """All new patterns, source by source."""
        return tuple(pattern for report in self.sources for pattern in report.new)


class Discovery:
    """The sources of one vault, and how far each was read."""

    def __init__(
        self,
        settings: Settings,
        fetch: Fetch,
        store: VaultStore | None = None,
        *,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._fetch = fetch
        self.store = store or vault_store(settings)
        self._cursors = Cursors(settings.state.state_db, "discovery")
        self._found = FoundPatterns(settings.state.state_db)
        self._clock = clock
        self._pause = pause

    def note(self) -> SourcesNote:
        """Return the parsed note. Raises EntryNotFound, EntryInvalid, VaultUnavailable."""
        entry = self.store.read(SOURCES_NOTE)
        read = parse_sources(entry.body, entry.extra.get("confirmed"))
        if (fault := find_fault(entry.text)) is None:
            return read
        problem = f"line {fault[0]} can't be read, so not all properties were: {fault[1].strip()[:80]}"
        return replace(read, problems=(problem, *read.problems))

    def scan(
        self,
        only: str | None = None,
        *,
        everything: bool = False,
        still_owned: Callable[[], bool] = lambda: True,
        on_source: Callable[[Source, int, int], None] = lambda source, number, of: None,
    ) -> ScanReport:
        """Ask each source, or `only` the one with this slug or address, for new patterns.

        A source's first scan records what it lists as known and proposes nothing; `everything` proposes all that was
        not found before. Raises NotConfirmed, UsageError, and the errors of `note`.
        """
        note = self.note()
        if not note.confirmed:
            raise NotConfirmed(
                f"the sources are not confirmed: look at {SOURCES_NOTE} in the vault and set `confirmed: true` there"
            )
        chosen = sources_called(only, note)
        reports: list[SourceReport] = []
        for number, source in enumerate(chosen):
            if not still_owned():
                break
            # A scan takes minutes: sources that the user removes meanwhile are not asked any more.
            current = sources_of(self.store)
            if not current.confirmed:
                left = f"no longer confirmed: {counted(len(chosen) - number, 'source was', 'sources were')} not asked"
                return ScanReport(tuple(reports), (*note.problems, left))
            if source.identity not in {one.identity for one in current.sources}:
                continue
            on_source(source, number, len(chosen))
            reports.append(self._scan(source, everything))
        return ScanReport(tuple(reports), note.problems)

    def _scan(self, source: Source, everything: bool) -> SourceReport:
        request = self._request(source)
        host = AskedHost(self._cursors, request.url, clock=self._clock, pause=self._pause)
        result = self._fetch(request) if request.kind == "folder" else host.ask(self._fetch, request)
        if result is None:
            return SourceReport(source, "waiting", detail=host.left_alone(), again_at=host.not_before())
        if result.problem:
            # The host is left alone for a while: retrying the job sooner would waste an attempt.
            return SourceReport(source, "error", detail=result.problem, again_at=host.not_before() or None)
        return self._take_in(source, result, everything)

    def _take_in(self, source: Source, result: FetchResult, everything: bool) -> SourceReport:
        seen = (self._cursors.get(source.identity) or {}).get("known")
        first = not isinstance(seen, list)
        known = [str(key) for key in seen] if isinstance(seen, list) else []
        brought = novelty(result.items, () if everything else known, source.slug)
        new = brought.new if everything or not first else ()
        if everything:
            new = self._found.unknown(new)
        self._found.add(new)
        kept = remembered(known, brought.known) if everything else brought.known
        self._cursors.set(source.identity, {"known": list(kept)})
        baseline = len(result.items) if first and not everything else 0
        return SourceReport(source, "fetched", new, len(result.items), baseline)

    def _request(self, source: Source) -> FetchRequest:
        target, api = source.target, self._settings.discovery.github_api
        match source.kind:
            case "topic":
                url = search_address(api, target, local_day(self._clock()) - timedelta(days=TOPIC_DAYS))
                return FetchRequest("topic", url)
            case "folder":
                if not target.startswith(("http://", "https://")):
                    return FetchRequest("folder", expand_home(target, self._settings.environment))
                tree = tree_address(api, target)
                if tree is not None:
                    return FetchRequest("tree", tree, target)
                return FetchRequest("list", target)
            case "feed":
                return FetchRequest("feed", target, target)
            case "list":
                return FetchRequest("list", raw_address(target))


def seed_sources(store: VaultStore, *, confirmed: bool = False) -> bool:
    """Write the note, by default as a proposal, if there is none; return whether it was written. Raises
    VaultUnavailable."""
    return seed_note(store, SOURCES_NOTE, SOURCES_TITLE, SOURCES_BODY, {"confirmed": confirmed})


def sources_called(name: str | None, note: SourcesNote) -> list[Source]:
    """Return all sources, or the one with this slug or address. Raises UsageError if there is none."""
    chosen = [source for source in note.sources if name in (None, source.slug, source.target)]
    if name is not None and not chosen:
        raise UsageError(
            f"{name} is not a source: {', '.join(source.slug for source in note.sources) or 'there is none'}"
        )
    return chosen
