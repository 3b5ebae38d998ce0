"""A large change that a job made unasked: told at each session's start, by health and console, for some days.

Light module: the hooks read it.
"""

from __future__ import annotations

import os

LARGE = 10
"""So many notes put away in one run are told."""
TOLD_SECONDS = 3 * 86_400.0
_NAME = "large-change"
_MOST_BYTES = 500


def note_large_change(markers: str, count: int, what: str, of: str) -> None:
    """Keep that a job did `what` with `count` notes, if they are many; `memory undo --of {of}` takes it back.

    Raises OSError.
    """
    if count < LARGE:
        return
    from .atomic_file import replace_file

    line = f"{count} notes were {what}; `memory undo --of {of}` takes it back"
    replace_file(os.path.join(markers, _NAME), line.encode("utf-8"))


def large_change_notice(markers: str, now: float) -> str:
    """What was kept, one line; '' for nothing, or nothing of the last days."""
    path = os.path.join(markers, _NAME)
    try:
        if now - os.stat(path).st_mtime > TOLD_SECONDS:
            return ""
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def forget_large_change(markers: str, of: str) -> None:
    """What `of` wrote was taken back."""
    path = os.path.join(markers, _NAME)
    try:
        with open(path, "rb") as file:
            if f"`memory undo --of {of}`".encode() not in file.read(_MOST_BYTES):
                return
        os.unlink(path)
    except OSError:
        return
