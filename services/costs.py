"""Record the cost of each session in an entry, updated as the session grows, and sum costs by week and project."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from ..pipelines.scrub import scrub
from ..runtime.days import parse_local_day
from ..runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound, PathRefused
from ..runtime.layout import DEFAULT_GROUP, PROJECTS, resolve_within
from ..runtime.settings import Settings
from ..runtime.slug import slugify
from ..sources.transcripts.usage import SessionUsage, session_bytes, session_usage
from ..vault.automemory import COST_KIND
from ..vault.entry import Source, parse_entry
from ..vault.fields import StoreValue
from ..vault.marker import REFLECTED, START, Marker, list_markers, marker_path, read_marker
from ..vault.project import project_of
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .cursors import Cursors

log = logging.getLogger(__name__)

SCAN = "session-cost"
BODY = "What the session cost, by the usage records of its transcript; the figures are in the properties."
_FIGURES = (
    "input_tokens",
    "output_tokens",
    "cache_write_tokens",
    "cache_read_tokens",
    "answers",
    "wall_seconds",
    "active_seconds",
)
_SUMMED = (*_FIGURES[:4], "active_seconds")
"""Columns in the order of CostRow."""


@dataclass(frozen=True)
class CostRow:
    """The sessions of one project in one week. `week` is its Monday, ISO date; tokens and seconds are sums."""

    week: str
    project: str
    sessions: int
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    active_seconds: int


def note_costs(settings: Settings, store: VaultStore) -> int:
    """Write or update the entry of every session with a marker that has grown; return how many were written.

    Repeating it writes nothing. Raises VaultUnavailable.
    """
    store.require_vault()
    cursors = Cursors(settings.state.state_db, SCAN)
    known = cursors.all()
    moved = _MovedNotes(store)
    written = 0
    for session, marker in _markers(settings).items():
        path, cursor = Path(marker.transcript), known.get(session, {})
        try:
            size = session_bytes(path)
            if cursor.get("bytes") == size:
                continue
            usage = session_usage(path, marker.host, marker.started_at)
        except OSError:
            continue
        if not usage.is_empty:
            try:
                written += _write(store, moved, marker, usage)
            except (EntryInvalid, EditConflict, EntryExists, EntryNotFound, PathRefused) as error:
                log.warning("the cost of session %s is not noted: %s", session, error)
                continue
        cursors.set(session, {"bytes": size})
    return written


def _markers(settings: Settings) -> dict[str, Marker]:
    """Return the markers of sessions whose transcripts are in place."""
    roots = [str(root) for root in settings.transcript_folders]
    markers = settings.state.markers
    found = {}
    for state in (START, REFLECTED):
        for session in list_markers(markers, state):
            marker = read_marker(marker_path(markers, session, state))
            if marker is not None and resolve_within(marker.transcript, roots) is not None:
                found[session] = marker
    return found


class _MovedNotes:
    """Finds cost notes that are not at their expected path, by the session they name.

    The user may have moved them or renamed the project's folder in Obsidian, or the session's folder was renamed, which
    changes its project. The vault is searched once, and only if a note is missing.
    """

    def __init__(self, store: VaultStore) -> None:
        self._store = store

    @cached_property
    def _notes(self) -> list[tuple[str, bytes]]:
        return [(path, data) for path, data in self._store.contents() if COST_KIND.encode() in data]

    def of(self, session: str) -> str | None:
        for path, data in self._notes:
            if session.encode() in data:
                entry = parse_entry(path, data)
                if entry.kind == COST_KIND and any(source.session == session for source in entry.sources):
                    return path
        return None


def _write(store: VaultStore, moved: _MovedNotes, marker: Marker, usage: SessionUsage) -> bool:
    project = project_of(marker.cwd)
    group = f"{PROJECTS}/{project}" if project else DEFAULT_GROUP
    slug = slugify(marker.session_id)
    path = f"{group}/{COST_KIND}/{slug}.md"
    day = usage.began.date() if usage.began is not None else store.today()
    figures: dict[str, StoreValue] = {name: getattr(usage, name) for name in _FIGURES}
    figures["models"] = [scrub(model) for model in usage.models]
    with store.lock():
        there = path if store.exists(path) else moved.of(marker.session_id)
        if there is not None:
            entry = store.read(there)
            # Only the figures are replaced: the user's text below them stays.
            return store.update(there, entry.content_hash, fields=figures).content_hash != entry.content_hash
        fields: dict[str, StoreValue] = {
            "kind": COST_KIND,
            "created": day,
            "updated": day,
            "group": group,
            "project": project or None,
            "source": [Source(marker.host, marker.session_id)],
            **figures,
        }
        title = Scrubbed.trusted(f"Session {marker.session_id[:8]} of {day}", reason="an id and a date")
        store.create(path, fields, title, Scrubbed.trusted(BODY, reason="our own words"))
        return True


def costs_by_week(store: VaultStore) -> list[CostRow]:
    """Return the sums of all cost entries, newest week first, and within a week the most expensive project first."""
    sums: dict[tuple[str, str], list[int]] = {}
    for path, data in store.contents():
        if COST_KIND.encode() not in data:
            continue
        entry = parse_entry(path, data)
        day = parse_local_day(entry.created or "")
        if entry.kind != COST_KIND or entry.effective_status != "active" or day is None:
            continue
        week = (day - timedelta(days=day.weekday())).isoformat()
        row = sums.setdefault((week, entry.project or ""), [0] * (1 + len(_SUMMED)))
        for place, value in enumerate((1, *(entry.extra.get(name) for name in _SUMMED))):
            row[place] += value if isinstance(value, int) else 0
    rows = [CostRow(week, project, *row) for (week, project), row in sums.items()]
    rows.sort(key=lambda row: (-row.output_tokens, row.project))
    return sorted(rows, key=lambda row: row.week, reverse=True)
