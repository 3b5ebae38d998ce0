"""Refuse a status that no note can have: it is a typing error, and an empty result would hide it."""

from __future__ import annotations

from collections.abc import Collection

from ..runtime.errors import UsageError
from ..vault.entry import STATUSES
from ..vault.store import VaultStore


def require_known(statuses: Collection[str], store: VaultStore) -> None:
    """Raise UsageError for a status, in lower case, that is neither one of STATUSES nor that of a note.

    The notes are read only for a status that is not one of STATUSES. Raises VaultUnavailable.
    """
    unknown = set(statuses) - set(STATUSES)
    if unknown and (unknown := unknown - {entry.status for entry in store.readable()}):
        raise UsageError(f"there is no status {min(unknown)!r}; there are: {', '.join(STATUSES)}")
