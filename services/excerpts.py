"""Show what was said in a session around the evidence of an entry, read from its transcript if it still exists.

A transcript may have a gigabyte, so the record is searched as bytes and only the lines around it are parsed. The result
is scrubbed like mined text, and without private passages.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.reading.context import occasion
from ..pipelines.scrub import Policy, scrub
from ..runtime.layout import resolve_within
from ..runtime.settings import Settings
from ..sources.transcripts.compressed import IN_DATABASE, is_there, last_written, open_bytes, transcript_status
from ..sources.transcripts.hosts import find_session, open_transcript
from ..sources.transcripts.opencode import DATABASE
from ..vault.entry import Source
from ..vault.marker import REFLECTED, START, is_session_id, marker_path, read_marker
from ..vault.scrubbed import Scrubbed
from ..vault.turn import Origin, Role, Turn

BEFORE, AFTER = 3, 2
"""How many pieces of the session are shown around a piece of evidence."""
BACK_LINES, BACK_BYTES = 60, 200_000
READ_BYTES = 4_000_000
"""How far is read before the first record, whichever is less, and after the last."""
MOST_CHARACTERS = 1_200
MOST_SCRUBBED = 20_000
"""A longer piece is cut here before scrubbing: far enough after the shown part that no secret is cut in two."""
MOST_PIECES = 40
MOST_RECORDS = 20
"""Limit, because each may need a search through the whole transcript."""
_LINE = "line:"


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
    answered = ""
    with suppress(OSError, KeyError):
        if source is not None and transcript is not None and (offsets := list(_offsets(transcript, source.records))):
            agent_said = ""
            for turn in open_transcript(transcript, _lines_before(transcript, min(offsets)), look_back=False):
                if turn.record in source.records or turn.offset > min(offsets):
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
    wanted = frozenset(records)
    offsets = list(_offsets(path, records))
    if not offsets:
        return
    start = _lines_before(path, min(offsets))
    reader = filter(_shown_text, open_transcript(path, start, look_back=False))
    before: deque[Turn] = deque(maxlen=BEFORE)
    left, count, seen = 0, 0, set(wanted)
    for turn in reader:
        if turn.offset > max(offsets) + READ_BYTES or count >= MOST_PIECES:
            return
        if turn.record in wanted:
            for earlier in before:
                yield _piece(earlier, is_evidence=False)
            count += len(before) + 1
            before.clear()
            yield _piece(turn, is_evidence=True)
            seen.discard(turn.record)
            left = AFTER
        elif left:
            yield _piece(turn, is_evidence=False)
            count += 1
            left -= 1
        elif not seen:
            return
        else:
            before.append(turn)


def _offsets(path: Path, records: Sequence[str]) -> Iterator[int]:
    """Return where the records' lines begin. A record without an id is named after that offset."""
    if transcript_status(path).size == 0:
        return
    written_names = open_transcript(path).written_names
    with _text_of(path) as data:
        for record in records[:MOST_RECORDS]:
            if record.startswith(_LINE):
                with suppress(ValueError):
                    yield min(int(record.removeprefix(_LINE)), len(data))
            elif record:
                # A line that carries the id, else any line that mentions it, in an unknown format.
                names = (*written_names(record), record.encode("utf-8", "replace"))
                if (at := next((found for name in names if (found := data.find(name)) >= 0), -1)) >= 0:
                    yield data.rfind(b"\n", 0, at) + 1


@contextmanager
def _text_of(path: Path) -> Iterator[bytes | mmap.mmap]:
    if IN_DATABASE in path.name:
        with open_bytes(path) as rows:
            yield rows.read(-1)
    else:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _lines_before(path: Path, offset: int) -> int:
    """Return the offset BACK_LINES lines before the one at `offset`, but at most BACK_BYTES before it."""
    begin = max(0, offset - BACK_BYTES)
    with open_bytes(path) as file:
        file.seek(begin)
        data = file.read(offset - begin)
    at = len(data)
    for _ in range(BACK_LINES + 1):
        if (at := data.rfind(b"\n", 0, at)) < 0:
            return begin + data.find(b"\n") + 1 if begin else 0
    return begin + at + 1


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
