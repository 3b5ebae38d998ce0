"""The list of entries that a session has been shown, so that none is printed twice; kept in the markers folder."""

from __future__ import annotations

import os


def injected_path(markers: str, session: str) -> str:
    """Path of the list: one vault-relative path on each line."""
    return f"{markers}/injected-{session}"


def read_injected(markers: str, session: str) -> set[str]:
    """Return the vault-relative paths of the entries that the session has been shown."""
    try:
        with open(injected_path(markers, session), "rb") as file:
            return set(file.read().decode("utf-8", "surrogateescape").split("\n")) - {""}
    except OSError:
        return set()


def is_recorded(markers: str, session: str) -> bool:
    """Whether there is a list for the session, even an empty one. There is none where no hook saw its start."""
    return os.path.exists(injected_path(markers, session))


def add_injected(markers: str, session: str, paths: list[str]) -> None:
    """Add `paths` to the entries that the session has been shown. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(injected_path(markers, session), flags, 0o600)
    try:
        os.write(descriptor, "".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def clear_injected(markers: str, session: str) -> None:
    """Empty the list after the session's context was compacted or cleared. Raises OSError."""
    try:
        os.truncate(injected_path(markers, session), 0)
    except FileNotFoundError:
        return
