"""A large change that a job made unasked: shown for some days at each session's start, in health and in the console.

Light module: the hooks read it.
"""

from __future__ import annotations

import os

LARGE = 10
"""Number of notes put away in one run from which it is shown."""
TOLD_SECONDS = 3 * 86_400.0
_NAME = "large-change"
_MOST_BYTES = 500


def note_large_change(markers: str, count: int, what: str, of: str) -> None:
    """Record that a job did `what` with `count` notes, if they are many; `memory undo --of {of}` undoes it.

    Raises OSError.
    """
    if count < LARGE:
        return
    from .atomic_file import replace_file

    line = f"{count} notes were {what}; `memory undo --of {of}` takes it back"
    replace_file(os.path.join(markers, _NAME), line.encode("utf-8"))


def large_change_notice(markers: str, now: float) -> str:
    """Return the record as one line; '' for none in the last days."""
    path = os.path.join(markers, _NAME)
    try:
        if now - os.stat(path).st_mtime > TOLD_SECONDS:
            return ""
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def forget_large_change(markers: str, of: str) -> None:
    """Delete the record of `of`, which was undone."""
    path = os.path.join(markers, _NAME)
    try:
        with open(path, "rb") as file:
            if f"`memory undo --of {of}`".encode() not in file.read(_MOST_BYTES):
                return
        os.unlink(path)
    except OSError:
        return
