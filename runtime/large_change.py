"""Large changes that jobs made unasked: shown for some days at each session's start, in health and in the console.

Light module: the hooks read it.
"""

from __future__ import annotations

import os

LARGE = 10
"""Number of notes put away in one run from which it is shown."""
TOLD_SECONDS = 3 * 86_400.0
JOBS = ("import", "triage", "skills")
"""The jobs that put away notes unasked; each has a record of its own."""
_MOST_BYTES = 500


def note_large_change(markers: str, of: str, count: int, what: str, remedy: str) -> None:
    """Record that the job `of`, one of JOBS, did `what` with `count` notes, if they are many; `remedy`: what the user
    can do about it. Raises OSError."""
    if count < LARGE:
        return
    from .atomic_file import replace_file

    replace_file(_record(markers, of), f"{count} notes were {what}; {remedy}".encode())


def large_change_notice(markers: str, now: float) -> str:
    """Return the records of the last days as one line; '' for none."""
    found = []
    for of in JOBS:
        try:
            if now - os.stat(_record(markers, of)).st_mtime <= TOLD_SECONDS:
                with open(_record(markers, of), "rb") as file:
                    found.append(file.read(_MOST_BYTES).decode("utf-8", "replace"))
        except OSError:
            continue
    return "; ".join(found)


def forget_large_change(markers: str, of: str) -> None:
    """Delete the record of `of`, which was undone."""
    try:
        os.unlink(_record(markers, of))
    except OSError:
        return


def _record(markers: str, of: str) -> str:
    return os.path.join(markers, f"large-change-{of}")
