"""The entries in use of a vault, counted in its files: what the index knows of those that are as it knows them, and the
others read. To read twenty thousand notes for a figure would take longer than all the rest of the page it stands on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from ..vault.entry import ACTIVE
from ..vault.errors import IndexUnavailable, SchemaTooNew
from ..vault.in_use import is_entry, is_place_of_entries
from ..vault.settings import Settings
from ..vault.store import VaultStore
from .health import VaultCounts, count_entries


def counts_of(settings: Settings, store: VaultStore) -> VaultCounts:
    """How the vault stands. Raises VaultUnavailable."""
    paths = [*store.walk()]
    known, set_aside = _indexed(Path(settings.state.index_db))
    place = [path for path in paths if is_place_of_entries(path)]
    unread = [path for path in place if path not in known or _state(store.vault, path) != known[path]]
    found = {path: set_aside[path] for path in {*place} - {*unread} if path in set_aside}
    for entry in store.readable(unread):
        status = entry.effective_status if is_entry(entry) else ""
        if status != ACTIVE:
            found[entry.path] = status
    return count_entries(paths, found)


def _state(vault: Path, path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        state = os.stat(f"{vault}/{path}")
        return state.st_mtime_ns, state.st_size
    return None


def _indexed(index_db: Path) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, str]]:
    from ..index.catalog_reader import CatalogReader  # Without an index there is no need for SQLite.

    if not index_db.exists():
        return {}, {}
    try:
        with closing(CatalogReader(index_db)) as reader, reader.snapshot():
            return reader.file_stamps(), reader.set_aside()
    except (IndexUnavailable, SchemaTooNew):
        return {}, {}
