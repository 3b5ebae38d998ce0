"""Open the vault and its index for commands and jobs."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from ..index.store import IndexStore, open_or_rebuild
from ..runtime.days import local_today
from ..runtime.errors import IndexUnavailable
from ..runtime.layout import INBOX, INDEX_WANTED, REVIEW
from ..runtime.paths import ensure_state
from ..runtime.settings import Settings
from ..vault.store import VaultStore
from .pausing import why_sealed

log = logging.getLogger(__name__)

DECISION_FOLDERS = frozenset({REVIEW, INBOX})
"""Folders where a changed note may hold a decision of the user."""


def vault_store(settings: Settings) -> VaultStore:
    """Return the vault's files."""
    return VaultStore(settings.required_vault_path, settings.state.vault_lock, local_today, why_sealed(settings))


def open_index(settings: Settings) -> IndexStore:
    """Open the index; a damaged one is set aside and replaced by an empty one. Raises IndexUnavailable."""
    ensure_state(settings.state, IndexUnavailable)
    store, set_aside = open_or_rebuild(Path(settings.state.index_db))
    if set_aside is not None:
        log.warning("the index was damaged: it is kept as %s and rebuilt from the files", set_aside.name)
        # The caller may only fill in a few paths or vectors, and an empty index looks like any other.
        with suppress(OSError):
            Path(settings.state.run, INDEX_WANTED).touch(mode=0o600)
    return store
