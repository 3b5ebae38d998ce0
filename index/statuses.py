"""A status that somebody asks for: one that can match nothing is a slip of the pen, not an empty answer."""

from __future__ import annotations

from collections.abc import Collection

from ..vault.entry import STATUSES
from ..vault.errors import UsageError
from ..vault.store import VaultStore


def require_known(statuses: Collection[str], store: VaultStore) -> None:
    """Raises UsageError for a status, in lower case, that is none of ours and that no note of the user's bears either.

    The notes are read only where one is not ours. Raises VaultUnavailable.
    """
    unknown = set(statuses) - set(STATUSES)
    if unknown and (unknown := unknown - {entry.effective_status for entry in store.readable()}):
        raise UsageError(f"there is no status {min(unknown)!r}; there are: {', '.join(STATUSES)}")
