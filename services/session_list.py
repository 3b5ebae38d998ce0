"""List sessions and what was learned from each, from markers, backfill, index, journal and ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ..hooks.recall_client import shorten
from ..index.catalog_reader import CatalogReader, EntryRow
from ..index.receipts import query_hash
from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import (
    EntryInvalid,
    EntryNotFound,
    IndexUnavailable,
    MemoryVaultError,
    PathRefused,
    QueueUnavailable,
    UsageError,
)
from ..runtime.settings import Settings
from ..sources.transcripts.compressed import transcript_status
from ..sources.transcripts.hosts import open_transcript
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.ledger import Job
from ..vault.automemory import COST_KIND
from ..vault.entry import Entry, parse_text
from ..vault.marker import (
    REFLECTED,
    START,
    Marker,
    is_session_id,
    last_event_at,
    list_markers,
    marker_path,
    read_marker,
)
from ..vault.project import project_of
from ..vault.turn import Origin, Role
from ..vault.wording import cut, one_line
from .corpus.store import CorpusStore
from .journal import Act, Journal
from .paging import Listed, page_of
from .stores import vault_store

T = TypeVar("T")

WORDS_CHARACTERS = 80
MOST_TURNS = 20
"""How many records are searched for the first one that the user typed."""
OLD = "old"
"""State of a session without a marker that was mined from its transcript."""


@dataclass(frozen=True)
class SessionRow:
    """One session."""

    id: str
    last: float
    """Unix seconds of its last event, else of its transcript's last change, else the day of its newest entry."""
    state: str
    """START, REFLECTED, OLD, or '' if only its entries are left; `last` is a day then."""
    learned: int
    """Number of entries first learned in it."""
    marker: Marker | None = None
    """Its marker, or what that would hold."""

    @property
    def host(self) -> str:
        return self.marker.host if self.marker else ""

    @property
    def cwd(self) -> str:
        return self.marker.cwd if self.marker else ""

    @property
    def project(self) -> str:
        return (project_of(self.cwd) if self.cwd else "") or ""

    @property
    def transcript(self) -> str:
        """Path of the transcript; '' if unknown."""
        return self.marker.transcript if self.marker else ""

    @property
    def mined_bytes(self) -> int:
        return self.marker.offset if self.marker else 0


@dataclass(frozen=True)
class TakenBackNote:
    """A note of the session that an undo removed or restored."""

    title: str
    path: str
    at: str
    """UTC, ISO 8601 with Z."""
    is_gone: bool
    """Whether the undo removed the note; otherwise it reverted this session's change."""


@dataclass(frozen=True)
class SessionStory:
    """All that is known about one session."""

    row: SessionRow
    unmined: int | None
    """Bytes of the transcript that are not mined yet; None if there is no transcript."""
    learned: tuple[EntryRow, ...]
    confirmed: tuple[EntryRow, ...]
    """Entries of other sessions that this one repeated or changed."""
    jobs: tuple[Job, ...]
    taken_back: tuple[TakenBackNote, ...] = ()
    """What `memory undo` reverted, as far as the journal goes back; newest first."""


def session_page(
    settings: Settings, number: int, size: int, *, search: str = "", only_learned: bool = False
) -> Listed[SessionRow]:
    """Return a page of sessions, latest first; `search` is a part of the id, the host or the folder."""
    learned: Mapping[str, tuple[int, str]] = _from_index(settings, CatalogReader.count_by_session, {})
    rows = _rows(settings, learned)
    if only_learned:
        rows = [row for row in rows if row.learned]
    if search:
        sought = search.lower()
        read = _with_markers(settings, rows)
        rows = [row for row in read if sought in f"{row.id} {row.host} {row.cwd}".lower()]
    page = page_of(rows, number, size)
    return replace(page, rows=_with_markers(settings, page.rows))


def session_story(settings: Settings, session: str) -> SessionStory:
    """Return one session. Raises UsageError if nothing is known about it."""
    if not is_session_id(session):
        raise UsageError(f"{session[:80]!r} is not a session's id")
    entries = _entries(settings, session)
    learned = tuple(entry for entry in entries if entry.kind != COST_KIND)
    row = next((row for row in _rows(settings, {}) if row.id == session), None)
    jobs: tuple[Job, ...] = ()
    with suppress(QueueUnavailable), open_ledger(settings) as ledger:
        jobs = tuple(ledger.of_session(session))
    acts = Journal(settings.state, vault_store(settings)).acts()
    taken_back = _taken_back(acts, session)
    if row is None and not entries and not jobs and not taken_back:
        raise UsageError(f"there is no session {session}")
    if row is None:
        days = [entry.created or "" for entry in entries]
        times = [_day(max(days, default="")), *(job.created_at for job in jobs), *(_day(one.at) for one in taken_back)]
        row = SessionRow(session, max(times), "", 0)
    (row,) = _with_markers(settings, [replace(row, learned=len(learned))])
    return SessionStory(
        row=row,
        unmined=_unmined(row),
        learned=learned,
        confirmed=_confirmed(settings, acts, session, {entry.path for entry in entries}),
        jobs=jobs,
        taken_back=taken_back,
    )


def session_names(settings: Settings, sessions: Iterable[str]) -> dict[str, str]:
    """Return a name for each session by id: the first words the user typed if receipts.prompts allows it, else the
    title of the first entry learned; a session with neither is left out."""
    wanted = list(sessions)
    names: dict[str, str] = {}
    with suppress(IndexUnavailable), closing(CatalogReader(Path(settings.state.index_db))) as reader, reader.snapshot():
        for session in wanted:
            if entries := [each for each in reader.entries_of_session(session) if each.kind != COST_KIND]:
                names[session] = entries[-1].title
    if settings.receipts.prompts:
        known = {row.id: row for row in _rows(settings, {})}
        for row in _with_markers(settings, [known[session] for session in wanted if session in known]):
            if words := _first_words(row):
                names[row.id] = words
    return names


def prompt_words(settings: Settings, receipts: Collection[Mapping[str, Any]]) -> dict[str, str]:
    """Return the first words of the prompts that these receipts are of, by the hash that a receipt has of its prompt;
    nothing unless receipts.prompts allows it."""
    if not settings.receipts.prompts:
        return {}
    sessions, wanted = ({str(one.get(name)) for one in receipts} for name in ("session", "query"))
    rows = _with_markers(settings, [row for row in _rows(settings, {}) if row.id in sessions])
    hashed = ((query_hash(shorten(text)), text) for row in rows for text in _typed(row, None))
    return {query: _shown(text) for query, text in hashed if query in wanted}


def _first_words(row: SessionRow) -> str:
    return next((_shown(text) for text in _typed(row, MOST_TURNS)), "")


def _shown(text: str) -> str:
    return cut(str(scrub(one_line(text), Policy.FULL)), WORDS_CHARACTERS)


def _typed(row: SessionRow, most: int | None) -> Iterator[str]:
    """The prompts that the user typed, among the first `most` records."""
    if row.transcript:
        with suppress(OSError, ValueError, MemoryVaultError):
            for turn in islice(open_transcript(Path(row.transcript), 0, row.host), most):
                if turn.role is Role.USER and turn.origin is Origin.PROMPT and turn.text.strip():
                    yield turn.text


def _rows(settings: Settings, learned: Mapping[str, tuple[int, str]]) -> list[SessionRow]:
    """Return all rows, latest first; markers are only listed, not read."""
    markers = settings.state.markers
    rows: dict[str, SessionRow] = {}
    for state in (REFLECTED, START):
        for session in list_markers(markers, state):
            at = last_event_at(marker_path(markers, session, state))
            if at is not None:
                rows[session] = SessionRow(session, at, state, learned.get(session, (0, ""))[0])
    for session, (marker, modified) in CorpusStore(settings.state).sessions().items():
        if session not in rows:
            rows[session] = SessionRow(session, modified, OLD, learned.get(session, (0, ""))[0], marker)
    for session, (count, day) in learned.items():
        if session not in rows:
            rows[session] = SessionRow(session, _day(day), "", count)
    return sorted(rows.values(), key=lambda row: (-row.last, row.id))


def _entries(settings: Settings, session: str) -> list[EntryRow]:
    return _from_index(settings, lambda reader: reader.entries_of_session(session), [])


def _from_index(settings: Settings, query: Callable[[CatalogReader], T], absent: T) -> T:
    """Return the result of a query of the index; `absent` if it cannot be read."""
    with suppress(IndexUnavailable), closing(CatalogReader(Path(settings.state.index_db))) as reader, reader.snapshot():
        return query(reader)
    return absent


def _confirmed(settings: Settings, acts: Sequence[Act], session: str, known: set[str]) -> tuple[EntryRow, ...]:
    """Read from the journal, which goes back some months: entries name all their sessions, the index only the first.

    A path from the journal may now hold another note: the written one was undone, or deleted and written again.
    """
    paths = {change.path for act in acts if act.session == session for change in act.changes} - known
    entries = filter(None, (_read(settings, path) for path in paths))
    again = [entry.path for entry in entries if any(source.session == session for source in entry.sources[1:])]
    return _from_index(settings, lambda reader: tuple(reader.entries_at_paths(again)), ())


def _taken_back(acts: Sequence[Act], session: str) -> tuple[TakenBackNote, ...]:
    """Read from the journal, which goes back some months."""
    written = {act.id for act in acts if act.session == session}
    found: dict[str, TakenBackNote] = {}
    for act in reversed(acts):
        if act.actor != "undo" or written.isdisjoint(act.undoes):
            continue
        for change in act.changes:
            if change.before is not None and change.path not in found and session in change.before:
                with suppress(EntryInvalid):
                    entry = parse_text(change.path, change.before)
                    found[change.path] = TakenBackNote(entry.title, change.path, act.at, change.after_hash is None)
    return tuple(found.values())


def _read(settings: Settings, path: str) -> Entry | None:
    with suppress(EntryNotFound, EntryInvalid, PathRefused):
        return vault_store(settings).read(path)
    return None


def _with_markers(settings: Settings, rows: Iterable[SessionRow]) -> list[SessionRow]:
    """Return the rows, completed from their markers if there are any."""
    markers = settings.state.markers  # Computed once: it hashes the vault's real path.
    return [
        replace(row, marker=read_marker(marker_path(markers, row.id, row.state)))
        if row.marker is None and row.state in (START, REFLECTED)
        else row
        for row in rows
    ]


def _unmined(row: SessionRow) -> int | None:
    if not row.transcript:
        return None
    try:
        return max(0, transcript_status(row.transcript).size - row.mined_bytes)
    except OSError:
        return None


def _day(day: str) -> float:
    with suppress(ValueError):
        return datetime.fromisoformat(day[:10]).astimezone().timestamp()
    return 0.0
