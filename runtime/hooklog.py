"""Write JSON lines to logs without a logging library, which is slow to load. Light module."""

from __future__ import annotations

import os
import time

from .interpreter import quote
from .layout import FILE_MODE

TIME_IS_UP = "time budget exceeded"
"""The result of a hook that was cut off, or left something out because its time was over."""
LATE = (b'"service": "slow"', b'"service": "not asked"', b"dense-late", f'"result": "{TIME_IS_UP}"'.encode())
"""In the line of a prompt that got no recall by meaning, because there was no time for it."""
TAIL_BYTES = 128 * 1024
LEAST_PROMPTS = 20
WEEK_SECONDS = 7 * 86_400.0
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


def busy_notice(log_file: str, now: float) -> str:
    """Return one line if half of the week's last prompts got no recall by meaning in time; '' otherwise."""
    try:
        with open(log_file, "rb", buffering=0) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except OSError:
        return ""
    since = utc_stamp(now - WEEK_SECONDS).encode()
    prompts = [line for line in lines if b'"hook": "UserPromptSubmit"' in line and line.split(b'"', 4)[3:4] > [since]]
    late = sum(any(mark in line for mark in LATE) for line in prompts)
    # At the level `warning` only those that ran out of time are in the log.
    if len(prompts) < LEAST_PROMPTS or late * 2 < len(prompts) or not any(b'"info"' in line for line in prompts):
        return ""
    return (
        f"{late} of the last {len(prompts)} prompts got no recall by meaning: the machine was busy (it helps to start "
        "builds and tests with `nice`)"
    )
