"""Write JSON lines to logs without a logging library, which is slow to load. Light module."""

from __future__ import annotations

import os
import time

from .interpreter import quote
from .layout import FILE_MODE

MAX_LINE_BYTES = 4000
"""Below PIPE_BUF, so that lines of two processes never mix."""


def format_line(level: str, event: str, fields: dict[str, object], now: float) -> str:
    """Format `{"time": "2026-07-01T10:00:00.123Z", "level": …, "event": …, "pid": …, <fields>}`, without a newline."""
    parts = ['"time": ' + quote(utc_stamp(now) + "Z"), '"level": ' + quote(level), '"event": ' + quote(event)]
    parts.append('"pid": ' + str(os.getpid()))
    for name, value in fields.items():
        if value is None or value is True or value is False:
            text = {None: "null", True: "true", False: "false"}[value]
        elif isinstance(value, int):
            text = str(value)
        elif isinstance(value, float) and value == value and abs(value) != float("inf"):
            text = repr(value)
        else:
            text = quote(str(value)[:1000])
        parts.append(quote(name) + ": " + text)
    return "{" + ", ".join(parts) + "}"


def utc_stamp(now: float) -> str:
    """Return a time as `2026-07-01T10:00:00.123`, in UTC. `now`: Unix seconds."""
    seconds = int(now)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int((now - seconds) * 1000):03d}"


def append_line(path: str, line: bytes) -> None:
    """Append a line in one write. Never raises: a log that cannot be written must fail nothing."""
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, FILE_MODE)
        try:
            os.write(descriptor, line + b"\n")
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return


def append(log_file: str, level: str, event: str, **fields: object) -> None:
    """Append one line of `format_line`. Never raises."""
    line = format_line(level, event, fields, time.time())
    if len(line) > MAX_LINE_BYTES:
        line = format_line(level, event, {"truncated": True}, time.time())
    append_line(log_file, line.encode("ascii"))
