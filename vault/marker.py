"""Session markers: the durable record of what is still to be mined.

`markers/session-id-<id>.start` is written by the first hook of a session, touched by later ones (its
modification time is the time of the session's last event) and rewritten by the worker alone. It is
renamed to `.reflected` once the session has ended and its last byte is mined. Light module.
"""

from __future__ import annotations

import os

from ..runtime.interpreter import get_ident
from ..runtime.layout import FILE_MODE
from ..runtime.snapshot import escape, unescape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

START: Final = "start"
REFLECTED: Final = "reflected"

MAX_MARKER_BYTES = 65_536
_PREFIX = "session-id-"
_ID_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_MAX_ID_LENGTH = 128
_TEXTS = ("session_id", "started_at", "source", "transcript", "cwd", "host")
"""Fields of a marker that are text, in the order of the file."""


class Marker:
    """The record of one session. `offset`: bytes of the transcript that are mined.

    `resume`: where the next reading begins so that mining understands what follows `offset`; never behind it.
    """

    __slots__ = ("cwd", "host", "offset", "resume", "session_id", "source", "started_at", "transcript")

    def __init__(
        self,
        session_id: str,
        started_at: str = "",
        source: str = "unknown",
        transcript: str = "",
        cwd: str = "",
        host: str = "",
        offset: int = 0,
        resume: int | None = None,
    ) -> None:
        self.session_id = session_id
        self.started_at = started_at
        self.source = source
        self.transcript = transcript
        self.cwd = cwd
        self.host = host
        self.offset = offset
        self.resume = offset if resume is None else min(resume, offset)

    def to_bytes(self) -> bytes:
        """Return the content of the file: one `name: value` line for each field."""
        lines = [name + ": " + escape(value) for name, value in self._texts().items()]
        lines.append("offset: " + str(self.offset))
        if self.resume != self.offset:
            lines.append("resume: " + str(self.resume))
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")

    def with_offset(self, offset: int, resume: int | None = None) -> Marker:
        """Return the same session, mined up to `offset`; `resume` is `offset` unless it is given."""
        return Marker(**self._texts(), offset=offset, resume=resume)

    def with_transcript(self, transcript: str) -> Marker:
        """Return the same session, with its transcript at another place."""
        texts = self._texts() | {"transcript": transcript}
        return Marker(**texts, offset=self.offset, resume=self.resume)

    def _texts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _TEXTS}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Marker) and self.to_bytes() == other.to_bytes()


def is_session_id(session_id: object) -> bool:
    """Whether it is `[A-Za-z0-9._-]{1,128}` without a dot at its beginning, and so is safe as part of a file name."""
    return (
        isinstance(session_id, str)
        and 0 < len(session_id) <= _MAX_ID_LENGTH
        and session_id[0] != "."
        and _ID_CHARACTERS.issuperset(session_id)
    )


def marker_path(markers: str, session_id: str, state: str = START) -> str:
    """Return the path of a session's marker. Raises ValueError for an id that cannot be a file name."""
    if not is_session_id(session_id):
        raise ValueError("not a session id: " + repr(session_id)[:80])
    return markers + "/" + _PREFIX + session_id + "." + state


def _write_temporary(markers: str, marker: Marker) -> str:
    # Each thread's own: in the worker the sweep and a session's job may write the same marker.
    temporary = markers + "/." + marker.session_id[:64] + "." + str(os.getpid()) + "-" + str(get_ident()) + ".tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        with open(descriptor, "wb") as file:
            file.write(marker.to_bytes())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def create_marker(markers: str, marker: Marker) -> bool:
    """Write the marker of a session without one; True if this call created it.

    An existing marker is never overwritten, and a reflected one is reopened with its offset. The file appears whole or
    not at all. Raises OSError, ValueError.
    """
    path = marker_path(markers, marker.session_id)
    if os.path.exists(path) or resume_marker(markers, marker.session_id):
        return False
    temporary = _write_temporary(markers, marker)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.exists(path):
            return False
        os.replace(temporary, path)
        return True
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return True


def touch_marker(markers: str, session_id: str) -> bool:
    """Set the time of the session's last event to now; reopens a reflected marker. False when there is no marker."""
    path = marker_path(markers, session_id)
    try:
        os.utime(path)
    except FileNotFoundError:
        if not resume_marker(markers, session_id):
            return False
        os.utime(path)
    return True


def read_marker(path: str) -> Marker | None:
    """Read the marker at `path`; None when there is none or it is damaged (no id, another session's id)."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_MARKER_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    try:
        text = data.decode("utf-8", "surrogatepass")
    except ValueError:
        text = data.decode("utf-8", "replace")
    values = {}
    for line in text.split("\n"):
        name, separator, value = line.partition(":")
        if separator:
            values[name] = unescape(value[1:] if value.startswith(" ") else value)
    session_id = values.get("session_id", "")
    if not is_session_id(session_id) or not os.path.basename(path).startswith(_PREFIX + session_id + "."):
        return None
    texts: dict[str, Any] = {name: values[name] for name in _TEXTS if name in values}
    offset = values.get("offset", "0")
    return Marker(**texts, offset=_bytes(offset), resume=_bytes(values.get("resume", offset)))


def _bytes(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def rewrite_marker(markers: str, marker: Marker) -> None:
    """Replace the marker's content atomically and keep the time of its last event. Only the worker calls it.

    A touch that falls between reading that time and the rename is lost; the job which the same hook
    enqueued is not. Raises OSError, FileNotFoundError when the session has no marker.
    """
    path = marker_path(markers, marker.session_id)
    status = os.stat(path)
    temporary = _write_temporary(markers, marker)
    os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(temporary, path)


def mark_reflected(markers: str, session_id: str) -> bool:
    """Rename `.start` to `.reflected`; False when there is no `.start`."""
    return _rename(marker_path(markers, session_id), marker_path(markers, session_id, REFLECTED))


def resume_marker(markers: str, session_id: str) -> bool:
    """Rename `.reflected` back to `.start`, its content unchanged; False when there is no `.reflected`."""
    return _rename(marker_path(markers, session_id, REFLECTED), marker_path(markers, session_id))


def _rename(old: str, new: str) -> bool:
    try:
        os.rename(old, new)
    except FileNotFoundError:
        return False
    return True


def remove_marker(markers: str, session_id: str, state: str) -> bool:
    """Delete a marker in the given state; False when there is none."""
    try:
        os.unlink(marker_path(markers, session_id, state))
    except FileNotFoundError:
        return False
    return True


def _ended_path(markers: str, session_id: str) -> str:
    if not is_session_id(session_id):
        raise ValueError("not a session id: " + repr(session_id)[:80])
    return markers + "/ended-" + session_id


def note_end(markers: str, session_id: str) -> None:
    """Record that the host ended the session: its marker may be reflected once the transcript is mined to its end."""
    path = _ended_path(markers, session_id)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def has_ended(markers: str, session_id: str) -> bool:
    """Whether the host has ended the session."""
    return os.path.exists(_ended_path(markers, session_id))


def forget_end(markers: str, session_id: str) -> None:
    """Delete the record of the session's end: it goes on, or its marker was reflected."""
    try:
        os.unlink(_ended_path(markers, session_id))
    except FileNotFoundError:
        return


def list_markers(markers: str, state: str = START) -> list[str]:
    """Return the ids of all sessions with a marker in the given state, sorted; [] if the folder is missing."""
    ending = "." + state
    try:
        names = os.listdir(markers)
    except (FileNotFoundError, NotADirectoryError):
        return []
    ids = [n[len(_PREFIX) : -len(ending)] for n in names if n.startswith(_PREFIX) and n.endswith(ending)]
    return sorted(i for i in ids if is_session_id(i))


def every_marker(markers: str) -> Iterator[tuple[str, Marker | None]]:
    """Yield each session with a marker, open or reflected, and its record; None if that cannot be read."""
    for state in (START, REFLECTED):
        for session in list_markers(markers, state):
            yield session, read_marker(marker_path(markers, session, state))


def last_event_at(path: str) -> float | None:
    """Return the Unix time of the session's last event; None when the marker is gone."""
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return None
