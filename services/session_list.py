"""Name sessions and prompts for lists of receipts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ..hooks.recall_client import shorten
from ..index.catalog_reader import CatalogReader
from ..index.receipts import query_hash
from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import IndexUnavailable, MemoryVaultError
from ..runtime.settings import Settings
from ..sources.transcripts.hosts import open_transcript
from ..vault.automemory import COST_KIND
from ..vault.marker import REFLECTED, START, Marker, is_session_id, marker_path, read_marker
from ..vault.turn import Origin, Role
from ..vault.wording import cut, one_line
from .corpus.store import CorpusStore

WORDS_CHARACTERS = 80
MOST_TURNS = 20
"""How many records are searched for the first one that the user typed."""


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
        for session, marker in _markers(settings, wanted).items():
            if words := next((_shown(text) for text in _typed(marker, MOST_TURNS)), ""):
                names[session] = words
    return names


def prompt_words(settings: Settings, receipts: Collection[Mapping[str, Any]]) -> dict[str, str]:
    """Return the first words of the prompts that these receipts are of, by the hash that a receipt has of its prompt;
    nothing unless receipts.prompts allows it."""
    if not settings.receipts.prompts:
        return {}
    sessions, wanted = ({str(one.get(name)) for one in receipts} for name in ("session", "query"))
    markers = _markers(settings, sessions).values()
    hashed = ((query_hash(shorten(text)), text) for marker in markers for text in _typed(marker, None))
    return {query: _shown(text) for query, text in hashed if query in wanted}


def _shown(text: str) -> str:
    return cut(str(scrub(one_line(text), Policy.FULL)), WORDS_CHARACTERS)


def _typed(marker: Marker, most: int | None) -> Iterator[str]:
    """The prompts that the user typed, among the first `most` records."""
    if marker.transcript:
        with suppress(OSError, ValueError, MemoryVaultError):
            for turn in islice(open_transcript(Path(marker.transcript), 0, marker.host), most):
                if turn.role is Role.USER and turn.origin is Origin.PROMPT and turn.text.strip():
                    yield turn.text


def _markers(settings: Settings, sessions: Iterable[str]) -> dict[str, Marker]:
    """Return the marker of each session, or what it would hold if a backfill mined the session; by id."""
    markers = settings.state.markers  # Computed once: it hashes the vault's real path.
    mined = CorpusStore(settings.state).sessions()
    found: dict[str, Marker] = {}
    for session in filter(is_session_id, sessions):
        marker = next(filter(None, (read_marker(marker_path(markers, session, at)) for at in (START, REFLECTED))), None)
        if marker is not None:
            found[session] = marker
        elif session in mined:
            found[session] = mined[session]
    return found
