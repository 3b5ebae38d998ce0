"""What was said in a session around the evidence of an entry, read from its transcript while that is still there.

A transcript may have a gigabyte: the record is looked up by its bytes, and only the lines around it are read. What is
returned is scrubbed as what is mined is; private passages are gone already.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.reading.context import occasion
from ..pipelines.scrub import Policy, scrub
from ..runtime.layout import resolve_within
from ..runtime.settings import Settings
from ..sources.transcripts.compressed import IN_DATABASE, is_there, last_written, open_bytes, transcript_status
from ..sources.transcripts.hosts import open_transcript
from ..sources.transcripts.opencode import DATABASE
from ..vault.entry import Source
from ..vault.marker import REFLECTED, START, is_session_id, marker_path, read_marker
from ..vault.scrubbed import Scrubbed
from ..vault.turn import Origin, Role, Turn

BEFORE, AFTER = 3, 2
"""Pieces of the session that are shown around a piece of evidence."""
BACK_LINES, BACK_BYTES = 60, 200_000
READ_BYTES = 4_000_000
"""So much is read before the first record, whichever is less, and behind the last."""
MOST_CHARACTERS = 1_200
MOST_SCRUBBED = 20_000
"""Of a longer piece only the beginning is scrubbed: far enough behind what is shown that no secret is cut in two."""
MOST_PIECES = 40
MOST_RECORDS = 20
"""Each may cost a look through the whole transcript."""
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
    """Of one session. Without pieces, `missing` says why."""

    host: str
    session: str
    pieces: tuple[Piece, ...] = ()
    missing: str = ""


def excerpts_of(settings: Settings, sources: Sequence[Source]) -> list[Excerpt]:
    """For each source the pieces of its session around the records that it names."""
    transcripts = find_transcripts(settings, {source.session for source in sources})
    return [_excerpt(source, transcripts.get(source.session)) for source in sources]


def occasion_of(settings: Settings, sources: Sequence[Source]) -> Scrubbed:
    """What the user answered by the first piece of evidence, in one line, as the miner tells it (`occasion`); '' where
    the user did not say it, or no transcript tells any more."""
    source = next((source for source in sources if source.session and source.records), None)
    transcript = find_transcripts(settings, {source.session}).get(source.session) if source else None
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


def find_transcripts(settings: Settings, sessions: Collection[str]) -> dict[str, Path]:
    """Where the sessions were written: where their markers say, else by their names in the hosts' folders.

    Those folders are walked once for all: most sessions of an old entry are gone, and that is known only at the end.
    """
    roots = [root for root in settings.transcript_folders if root.is_dir()]
    folders = [str(root) for root in roots]
    found: dict[str, Path] = {}
    for session in filter(is_session_id, sessions):
        for state in (START, REFLECTED):
            marker = read_marker(marker_path(settings.state.harness, session, state))
            if marker is None or resolve_within(marker.transcript, folders) is None:
                continue
            if is_there(marker.transcript):
                found.setdefault(session, Path(marker.transcript))
    for root in roots:
        sought = [session for session in sessions if is_session_id(session) and session not in found]
        if sought and (root / DATABASE).exists():
            for session in sought:
                with suppress(OSError):  # Of one that cannot be read it is not known which sessions it has.
                    last_written(row := root / f"{DATABASE}#{session}")
                    found[session] = row
        elif sought:
            found |= _by_name(root, sought)
    return found


def _by_name(root: Path, sessions: Sequence[str]) -> dict[str, Path]:
    best: dict[str, tuple[int, Path]] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.endswith(".jsonl"):
                continue
            for session in sessions:
                likeness = _likeness(folder, name, session)
                if likeness is None or (session in best and best[session][0] <= likeness):
                    continue
                path = Path(folder, name)
                if path.is_file() and resolve_within(str(path), [str(root)]):
                    best[session] = (likeness, path)
    return {session: path for session, (_, path) in best.items()}


def _likeness(folder: str, name: str, session: str) -> int | None:
    """How a file is named after a session, 0 for the clearest: the file's whole name, or its end (Codex), or its
    folder's (Copilot, Antigravity). None: it is another session's."""
    if name == f"{session}.jsonl":
        return 0
    if name.endswith(f"-{session}.jsonl"):
        return 1
    if name == "events.jsonl" and folder.endswith(f"/{session}"):
        return 2
    return 3 if folder.endswith(f"/{session}/.system_generated/logs") else None


def _pieces(path: Path, records: Sequence[str]) -> Iterator[Piece]:
    """Around each record, in the order of the session, each piece once."""
    wanted = frozenset(records)
    offsets = list(_offsets(path, records))
    if not offsets:
        return
    start = _lines_before(path, min(offsets))
    reader = filter(_told, open_transcript(path, start, look_back=False))
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
    """Where the records' lines begin. A record without a name of its own is named after that place."""
    if transcript_status(path).size == 0:
        return
    written_names = open_transcript(path).written_names
    with _text_of(path) as data:
        for record in records[:MOST_RECORDS]:
            if record.startswith(_LINE):
                with suppress(ValueError):
                    yield min(int(record.removeprefix(_LINE)), len(data))
            elif record:
                # Where it names itself; else where anything does, in a form that is not known here.
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
    """Where the BACK_LINES lines before the one at `offset` begin, or as many of them as lie in BACK_BYTES."""
    begin = max(0, offset - BACK_BYTES)
    with open_bytes(path) as file:
        file.seek(begin)
        data = file.read(offset - begin)
    at = len(data)
    for _ in range(BACK_LINES + 1):
        if (at := data.rfind(b"\n", 0, at)) < 0:
            return begin + data.find(b"\n") + 1 if begin else 0
    return begin + at + 1


def _told(turn: Turn) -> str:
    """What is shown of it: of a tool call that is without a text, such as an agent's leaving its plan mode, the name;
    '' for nothing, such as a command's empty output."""
    if turn.text.strip():
        return turn.text
    return turn.tool.name if turn.tool is not None and turn.origin is Origin.TOOL_USE else ""


def _piece(turn: Turn, *, is_evidence: bool) -> Piece:
    text = scrub(_told(turn)[:MOST_SCRUBBED], Policy.FULL)
    cut = len(text) > MOST_CHARACTERS
    shown = Scrubbed.trusted(text[:MOST_CHARACTERS], reason="the beginning of scrubbed text") if cut else text
    return Piece(turn.role, shown, turn.timestamp or "", is_evidence, cut)
