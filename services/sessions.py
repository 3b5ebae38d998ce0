"""Find the sessions that still have something to mine, from the markers and not from the queue.

If queue.db is deleted, the next sweep creates every job again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ..runtime.days import SECONDS_PER_DAY
from ..runtime.layout import resolve_within
from ..runtime.paths import delete_older
from ..sources.transcripts.compressed import SUFFIX, transcript_status
from ..sources.transcripts.lines import complete_lines
from ..vault.marker import (
    REFLECTED,
    START,
    Marker,
    forget_end,
    last_event_at,
    list_markers,
    mark_reflected,
    marker_path,
    read_marker,
    remove_marker,
    resume_marker,
    rewrite_marker,
)

OUTSIDE = "the transcript lies outside the agent hosts' folders: refused"
"""Error text of a session's job that is dead."""

IDLE_SECONDS = 30 * 60.0
"""A session that is silent for this long is reflected."""
OVER_SECONDS = 60 * 60.0
"""A session that is mined to its end, or has lost its transcript, is over when it is silent for this long."""
FUTURE_SECONDS = 60.0
"""Tolerance for a file time in the future, set by another machine's clock."""


class Verdict(Enum):
    """The sweep's decision about a marker."""

    LIVE = "live"
    MINE = "mine"
    FINISHED = "finished"
    DEAD_POINTER = "dead pointer"


def judge(silent: float, offset: int, size: int | None, *, is_gone: bool = False) -> Verdict:
    """Decide on one session. A recently active session is live, whatever its marker says.

    `silent` are the seconds since its last activity; `size` is None if the transcript cannot be accessed now, and
    `is_gone` tells that its host has deleted it.
    """
    if size is None:
        return Verdict.DEAD_POINTER if is_gone and silent >= OVER_SECONDS else Verdict.LIVE
    if size != offset:  # A shorter transcript was rewritten, so its text may be new.
        return Verdict.MINE if silent >= IDLE_SECONDS else Verdict.LIVE
    return Verdict.FINISHED if silent >= OVER_SECONDS else Verdict.LIVE


@dataclass(frozen=True)
class Unmined:
    """A silent session with bytes that are not mined."""

    session: str
    transcript: str
    last_sign: float
    """Unix seconds of its last event or of its transcript's last line."""


@dataclass(frozen=True)
class SweepResult:
    """Number of sessions by verdict, and the ids of those that are over."""

    to_mine: tuple[Unmined, ...]
    finished: tuple[str, ...]
    dead_pointers: tuple[str, ...]


def sweep(markers: str, roots: Sequence[str], *, now: float) -> SweepResult:
    """Check every open marker: put finished and dead ones away, and return those to mine. `roots` are the hosts'
    transcript folders.

    A transcript that grew without a hook (its host was killed while writing) counts as activity.
    """
    found: dict[Verdict, list[Unmined]] = {verdict: [] for verdict in Verdict}
    for session in list_markers(markers, REFLECTED):
        # The host writes asynchronously: its last lines may come after the session was mined and put away.
        if _has_changed(marker_path(markers, session, REFLECTED), roots):
            resume_marker(markers, session)
    for session in list_markers(markers):
        # A problem with one session, such as a name that is too long, must not block the others.
        with contextlib.suppress(OSError, ValueError):
            if looked := _look_at(markers, session, roots, now):
                verdict, unmined = looked
                found[verdict].append(unmined)
    finished, dead_pointers = (
        tuple(each.session for each in found[verdict]) for verdict in (Verdict.FINISHED, Verdict.DEAD_POINTER)
    )
    for session in finished:
        mark_reflected(markers, session)
        forget_end(markers, session)
    for session in dead_pointers:
        remove_marker(markers, session, START)
    return SweepResult(tuple(found[Verdict.MINE]), finished, dead_pointers)


def _look_at(markers: str, session: str, roots: Sequence[str], now: float) -> tuple[Verdict, Unmined] | None:
    """Return the verdict on one open marker; None if it is gone or damaged. Raises OSError, ValueError."""
    path = marker_path(markers, session)
    marker, event_at = read_marker(path), last_event_at(path)
    if marker is None or event_at is None:
        return None
    if event_at > now + FUTURE_SECONDS:  # The clock was wrong then.
        event_at = 0.0
    marker = follow_transcript(markers, marker, roots)
    size: int | None = None
    is_gone = False
    try:
        status = transcript_status(marker.transcript)
        if status.modified <= now + FUTURE_SECONDS:
            event_at = max(event_at, status.modified)
        has_news = _has_news(marker, status.size, roots)
        # The size of a compressed transcript says nothing.
        size = max(status.size, marker.offset + _is_compressed(marker)) if has_news else marker.offset
    except FileNotFoundError:
        is_gone = _is_in_reach(marker.transcript, roots)
    except OSError:
        pass
    verdict = judge(now - event_at, marker.offset, size, is_gone=is_gone)
    return verdict, Unmined(session, marker.transcript, event_at)


def follow_transcript(markers: str, marker: Marker, roots: Sequence[str]) -> Marker:
    """Update the marker of a transcript that has moved; return it unchanged if the transcript is in place or nowhere.

    Moving or renaming a project's folder moves the host's folder for it, and the session continues there; Codex
    compresses finished transcripts. Raises OSError.
    """
    if os.path.lexists(marker.transcript):
        return marker
    from ..sources.transcripts.hosts import find_session  # Imported late: its patterns take a while to compile.

    compressed = marker.transcript + SUFFIX
    found = find_session(marker.session_id, marker.host or "claude", map(Path, roots))
    if found is None and os.path.isfile(compressed):  # Not Path.is_file: a path too long is no failure here.
        found = Path(compressed)
    known = None if found is None else resolve_within(str(found), roots)
    newest = read_marker(marker_path(markers, marker.session_id))  # A job may have mined meanwhile.
    if known is None or newest is None or newest.transcript != marker.transcript:
        return newest or marker
    moved = newest.with_transcript(known)
    rewrite_marker(markers, moved)
    return moved


def _is_in_reach(transcript: str, roots: Sequence[str]) -> bool:
    """Whether a transcript's place can be accessed: a missing volume leaves no folder, or an empty one."""
    place = next((root for root in roots if resolve_within(transcript, [root])), os.path.dirname(transcript))
    try:
        with os.scandir(place) as found:
            return next(found, None) is not None
    except OSError:
        return False


def _has_news(marker: Marker, size: int, roots: Sequence[str]) -> bool:
    """Whether a reading would find anything. A half line, left by a host that was killed, does not count. Raises
    OSError."""
    if (size <= marker.offset and not _is_compressed(marker)) or resolve_within(marker.transcript, roots) is None:
        return size != marker.offset
    return any(True for _ in complete_lines(Path(marker.transcript), marker.offset))


def _is_compressed(marker: Marker) -> bool:
    return marker.transcript.endswith(SUFFIX)


def _has_changed(path: str, roots: Sequence[str]) -> bool:
    marker = read_marker(path)
    try:
        return marker is not None and _has_news(marker, transcript_status(marker.transcript).size, roots)
    except OSError:
        return False


def collect_old_markers(markers: str, *, now: float, days: int) -> int:
    """Delete the markers of sessions that were reflected more than `days` ago; return the number of files deleted.

    An open marker is never old, because its session is not mined yet.
    """
    limit = now - days * SECONDS_PER_DAY
    gone = 0
    for session in list_markers(markers, REFLECTED):
        event_at = last_event_at(marker_path(markers, session, REFLECTED))
        if event_at is not None and event_at < limit:
            gone += remove_marker(markers, session, REFLECTED)
    leftovers = (path for kind in ("injected", "told", "ended") for path in Path(markers).glob(f"{kind}-*"))
    return gone + delete_older(leftovers, limit)
