"""What was said in a session around the evidence of an entry, read from its transcript while that is still there.

A transcript may have a gigabyte: the record is looked up by its bytes, and only the lines around it are read. What is
returned is scrubbed as what is mined is; private passages are gone already.
"""

from __future__ import annotations

import glob
import mmap
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.scrub import Policy, scrub
from ..sources.transcripts.hosts import open_transcript
from ..vault.entry import Source
from ..vault.marker import REFLECTED, START, is_session_id, marker_path, read_marker
from ..vault.scrubbed import Scrubbed
from ..vault.settings import Settings
from ..vault.turn import Role, Turn
from .sessions import is_under

BEFORE, AFTER = 3, 2
"""Pieces of the session that are shown around a piece of evidence."""
BACK_BYTES = 200_000
READ_BYTES = 4_000_000
"""So much is read before the first record and behind it."""
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


def excerpt_of(settings: Settings, source: Source) -> Excerpt:
    """The pieces of the session around the records that `source` names."""
    found = find_transcript(settings, source.session)
    if found is None:
        return Excerpt(source.host, source.session, missing="Its transcript is not on this machine any more.")
    try:
        pieces = tuple(_pieces(found, source.records))
    except (OSError, KeyError):
        return Excerpt(source.host, source.session, missing="Its transcript cannot be read.")
    if not pieces:
        return Excerpt(source.host, source.session, missing="Its transcript does not hold these lines any more.")
    return Excerpt(source.host, source.session, pieces)


def find_transcript(settings: Settings, session: str) -> Path | None:
    """Where the session was written: where its marker says, else by its name in the hosts' folders."""
    if not is_session_id(session):
        return None
    roots = [root for root in settings.transcript_roots if root.is_dir()]
    for state in (START, REFLECTED):
        marker = read_marker(marker_path(settings.state.harness, session, state))
        if marker is not None and is_under(marker.transcript, [str(root) for root in roots]):
            path = Path(marker.transcript)
            if path.is_file():
                return path
    name = glob.escape(session)
    # The file's whole name, or its end (Codex), or its folder's (Copilot, Antigravity): never another session's.
    names = (f"{name}.jsonl", f"*-{name}.jsonl", f"{name}/events.jsonl", f"{name}/.system_generated/logs/*.jsonl")
    for root in roots:
        for pattern in names:
            for path in root.rglob(pattern):
                if path.is_file() and is_under(str(path), [str(root)]):
                    return path
    return None


def _pieces(path: Path, records: Sequence[str]) -> Iterator[Piece]:
    """Around each record, in the order of the session, each piece once."""
    wanted = frozenset(records)
    offsets = list(_offsets(path, records))
    if not offsets:
        return
    start = _line_start(path, max(0, min(offsets) - BACK_BYTES))
    reader = open_transcript(path, start, look_back=False)
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
    if os.stat(path).st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for record in records[:MOST_RECORDS]:
            if record.startswith(_LINE):
                with suppress(ValueError):
                    yield min(int(record.removeprefix(_LINE)), len(data))
            elif record and (at := data.find(record.encode("utf-8", "replace"))) >= 0:
                yield data.rfind(b"\n", 0, at) + 1


def _line_start(path: Path, offset: int) -> int:
    """The first line that begins at `offset` or behind it."""
    if offset == 0:
        return 0
    with path.open("rb") as file:
        file.seek(offset - 1)
        return offset - 1 + len(file.readline(READ_BYTES))


def _piece(turn: Turn, *, is_evidence: bool) -> Piece:
    text = scrub(turn.text[:MOST_SCRUBBED], Policy.FULL)
    cut = len(text) > MOST_CHARACTERS
    shown = Scrubbed.trusted(text[:MOST_CHARACTERS], reason="the beginning of scrubbed text") if cut else text
    return Piece(turn.role, shown, turn.timestamp or "", is_evidence, cut)
