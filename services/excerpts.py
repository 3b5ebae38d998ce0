"""Show what was said in a session around the evidence of an entry, read from its transcript if it still exists.

The result is scrubbed like mined text, and without private passages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.reading.context import occasion
from ..pipelines.scrub import Policy, scrub
from ..runtime.layout import resolve_within
from ..runtime.settings import Settings
from ..sources.transcripts.compressed import is_there, last_written
from ..sources.transcripts.hosts import find_session, open_transcript
from ..sources.transcripts.opencode import DATABASE
from ..vault.entry import Source
from ..vault.marker import REFLECTED, START, is_session_id, marker_path, read_marker
from ..vault.scrubbed import Scrubbed
from ..vault.turn import Origin, Role, Turn

BEFORE, AFTER = 3, 2
"""How many pieces of the session are shown around a piece of evidence."""
MOST_CHARACTERS = 1_200
MOST_SCRUBBED = 20_000
"""A longer piece is cut here before scrubbing: far enough after the shown part that no secret is cut in two."""
MOST_PIECES = 40


@dataclass(frozen=True)
class Piece:
    """Something that was said or done. `is_evidence`: the entry names it."""

    who: Role
    text: Scrubbed
    at: str
    """ISO 8601 as the host wrote it, or ''."""
    is_evidence: bool
    is_cut: bool


@dataclass(frozen=True)
class Excerpt:
    """Pieces of one session. If there are none, `missing` says why."""

    host: str
    session: str
    pieces: tuple[Piece, ...] = ()
    missing: str = ""


def excerpts_of(settings: Settings, sources: Sequence[Source]) -> list[Excerpt]:
    """Return for each source the pieces of its session around its records."""
    return [_excerpt(source, find_transcript(settings, source)) for source in sources]


def occasion_of(settings: Settings, sources: Sequence[Source]) -> Scrubbed:
    """Return what the user answered with the first piece of evidence, in one line, as the miner writes it (`occasion`).

    Return '' if the user did not say it, or the transcript is gone.
    """
    source = next((source for source in sources if source.session and source.records), None)
    transcript = find_transcript(settings, source) if source is not None else None
    answered = agent_said = ""
    with suppress(OSError, KeyError):
        for turn in open_transcript(transcript) if source is not None and transcript is not None else ():
            if source is not None and turn.record in source.records:
                answered = occasion(turn, agent_said) if turn.is_users_words else ""
                break
            if turn.origin is Origin.ASSISTANT:
                agent_said = turn.text
    return scrub(answered, Policy.FULL)


def _excerpt(source: Source, transcript: Path | None) -> Excerpt:
    if transcript is None:
        return Excerpt(source.host, source.session, missing="Its transcript is not on this machine any more.")
    try:
        pieces = tuple(_pieces(transcript, source.records))
    except (OSError, KeyError):
        return Excerpt(source.host, source.session, missing="Its transcript cannot be read.")
    if not pieces:
        return Excerpt(source.host, source.session, missing="Its transcript does not hold these lines any more.")
    return Excerpt(source.host, source.session, pieces)


def find_transcript(settings: Settings, source: Source) -> Path | None:
    """Find the transcript of a source's session: by its marker, else by its name in the hosts' folders."""
    if not is_session_id(source.session):
        return None
    roots = [root for root in settings.transcript_folders if root.is_dir()]
    folders = [str(root) for root in roots]
    for state in (START, REFLECTED):
        marker = read_marker(marker_path(settings.state.markers, source.session, state))
        if marker is not None and resolve_within(marker.transcript, folders) and is_there(marker.transcript):
            return Path(marker.transcript)
    for root in roots:
        if (root / DATABASE).exists():
            with suppress(OSError):  # Of one that cannot be read it is not known which sessions it has.
                last_written(row := root / f"{DATABASE}#{source.session}")
                return row
    found = find_session(source.session, source.host, roots)
    return found if found is not None and resolve_within(str(found), folders) else None


def _pieces(path: Path, records: Sequence[str]) -> Iterator[Piece]:
    """Return the pieces around each record in the order of the session, without duplicates."""
    wanted, missing = frozenset(records), set(records)
    before: deque[Turn] = deque(maxlen=BEFORE)
    left = count = 0
    for turn in filter(_shown_text, open_transcript(path)):
        if count >= MOST_PIECES:
            return
        if turn.record in wanted:
            for earlier in before:
                yield _piece(earlier, is_evidence=False)
            count += len(before) + 1
            before.clear()
            yield _piece(turn, is_evidence=True)
            missing.discard(turn.record)
            left = AFTER
        elif left:
            yield _piece(turn, is_evidence=False)
            count += 1
            left -= 1
        elif not missing:
            return
        else:
            before.append(turn)


def _shown_text(turn: Turn) -> str:
    """Return the text to show: for a tool call without text, such as leaving plan mode, its name; '' for nothing, such
    as a command's empty output."""
    if turn.text.strip():
        return turn.text
    return turn.tool.name if turn.tool is not None and turn.origin is Origin.TOOL_USE else ""


def _piece(turn: Turn, *, is_evidence: bool) -> Piece:
    text = scrub(_shown_text(turn)[:MOST_SCRUBBED], Policy.FULL)
    cut = len(text) > MOST_CHARACTERS
    shown = Scrubbed.trusted(text[:MOST_CHARACTERS], reason="the beginning of scrubbed text") if cut else text
    return Piece(turn.role, shown, turn.timestamp or "", is_evidence, cut)
