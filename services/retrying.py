"""A note that is to be changed: as the user saw it, or read again where a person saves it in that very moment."""

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
    """The note at `path`; with `expected_hash` only as the user saw it.

    Raises EntryNotFound, which says that it `gone`, EditConflict where it is another now, EntryInvalid,
    VaultUnavailable.
    """
    try:
        entry = store.read(path)
    except EntryNotFound as error:
        raise EntryNotFound(f"{path} {gone}") from error
    if expected_hash is not None and entry.content_hash != expected_hash:
        raise EditConflict(f"{path} was changed since you saw it: look at it again")
    return entry


def retry_edit(change: Callable[[], T], *, again: bool = True) -> T:
    """What `change` returns, which reads the file anew each time; EditConflict when it raises that at every attempt.

    `again` False: one attempt, where what the user saw must be what is changed.
    """
    for _ in range(ATTEMPTS - 1 if again else 0):
        with suppress(EditConflict):
            return change()
    return change()
