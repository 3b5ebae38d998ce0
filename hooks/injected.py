"""Lists of what a session was given, in the markers folder, so that nothing is given twice.

`injected-<session>` has the vault-relative paths of the entries that it was shown; `told-<session>` the rules and
remedies at tool calls, each as guard, tab, path of the entry, and a tab and the sub-agent's id if it was given to one.
"""

from __future__ import annotations

import os

CUT_OFF = "\t"
"""Line in the list of entries for a start of the session that ran out of time; that of the n-th has n tabs."""
MOST_CUT_OFF = 3
"""So many starts that were cut off are enough: on a slow machine each would be."""


def read_injected(markers: str, session: str) -> set[str] | None:
    """Return the paths of the entries that the session was shown; None where there is no list, since no hook saw its
    start."""
    return _read(f"{markers}/injected-{session}")


def add_injected(markers: str, session: str, paths: list[str]) -> None:
    """Add paths, perhaps none, to the list of entries. Raises OSError."""
    _add(f"{markers}/injected-{session}", paths)


def add_start(markers: str, session: str, paths: list[str], *, is_whole: bool) -> None:
    """Add what a start gave. If that is not all of it, the next prompt is given it again. Raises OSError."""
    given = read_injected(markers, session) or set()
    cut_off = sum(not line.strip(CUT_OFF) for line in given)
    if is_whole:
        marks = [CUT_OFF * MOST_CUT_OFF] if cut_off else []
    else:
        marks = [CUT_OFF * (1 + cut_off if paths else 1)]
    add_injected(markers, session, paths + marks)


def is_start_due(given: set[str] | None) -> bool:
    """Whether the start of a session with this list of entries is to be given again."""
    return given is not None and CUT_OFF in given and CUT_OFF * MOST_CUT_OFF not in given


def read_told(markers: str, session: str) -> set[str]:
    """Return the lines on rules and remedies."""
    return _read(f"{markers}/told-{session}") or set()


def add_told(markers: str, session: str, lines: list[str]) -> None:
    """Add lines on rules and remedies, if the session is known. Raises OSError."""
    if session:
        _add(f"{markers}/told-{session}", lines)


def forget_given(markers: str, session: str) -> None:
    """Forget what was given, because the session's context was compacted or cleared. Raises OSError.

    Reminders stay: a call that was refused once is not refused again.
    """
    injected = f"{markers}/injected-{session}"
    if os.path.exists(injected):
        os.truncate(injected, 0)
    kept = [line for line in read_told(markers, session) if line[:1] != "\t"]
    try:
        os.unlink(f"{markers}/told-{session}")
    except OSError:
        return
    if kept:
        add_told(markers, session, sorted(kept))


def _read(path: str) -> set[str] | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return set(file.read().decode("utf-8", "surrogateescape").split("\n")) - {""}
    except OSError:
        return None


def _add(path: str, lines: list[str]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)
