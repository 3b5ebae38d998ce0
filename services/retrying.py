"""Change a note as the user saw it, or read it again if a person saves it at that moment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ..runtime.errors import EditConflict, EntryNotFound
from ..vault.entry import Entry
from ..vault.store import VaultStore

ATTEMPTS = 3
T = TypeVar("T")


def read_seen(store: VaultStore, path: str, expected_hash: str | None = None, gone: str = "is gone") -> Entry:
    """Return the note at `path`; with `expected_hash`, only if it is as the user saw it.

    Raises EntryNotFound (with the text `gone`), EditConflict if it has changed, EntryInvalid, VaultUnavailable.
    """
    try:
        entry = store.read(path)
    except EntryNotFound as error:
        raise EntryNotFound(f"{path} {gone}") from error
    if expected_hash is not None and entry.content_hash != expected_hash:
        raise EditConflict(f"{path} was changed since you saw it: look at it again")
    return entry


def retry_edit(change: Callable[[], T], *, again: bool = True) -> T:
    """Return the result of `change`, which reads the file anew for each attempt; raise its EditConflict after the last.

    `again` False: make one attempt, because exactly what the user saw must be changed.
    """
    for _ in range(ATTEMPTS - 1 if again else 0):
        with suppress(EditConflict):
            return change()
    return change()
