"""Count the entries of a vault that are in use.

The files decide. A file whose time and size are as the index knows them is not read again: reading 20,000 notes for one
figure would take longer than the rest of the page that shows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ..runtime.errors import IndexUnavailable, SchemaTooNew
from ..runtime.settings import Settings
from ..vault.active import is_entry, is_entry_place
from ..vault.entry import ACTIVE
from ..vault.store import VaultStore
from ..vault.wording import counted
from .pending_counts import count_pending_paths


@dataclass(frozen=True)
class ActiveCounts:
    """Numbers of entries in use, by group and in total, and of entries set aside. A recall may show those in use."""

    groups: Mapping[str, int]
    in_use: int
    set_aside: Mapping[str, int]
    """By status: entries beside those in use whose status is not `active`."""


def count_active(settings: Settings, store: VaultStore) -> ActiveCounts:
    """Count the entries in use of the vault. Raises VaultUnavailable."""
    folders = _entry_folders(store.walk())
    stamps, known = read_index(Path(settings.state.index_db)) or ({}, {})
    paths = {path for found in folders.values() for path in found}
    changed = {path for path in paths if path not in stamps or _stamp(store.vault / path) != stamps[path]}
    set_aside = {path: status for path, status in known.items() if path in paths and path not in changed}
    for entry in store.readable(sorted(changed)):
        status = entry.effective_status if is_entry(entry) else ""
        if status != ACTIVE:
            set_aside[entry.path] = status
    return _count(folders, set_aside)


def count_active_paths(paths: Iterable[str], set_aside: Mapping[str, str] = MappingProxyType({})) -> ActiveCounts:
    """Count the entries at these vault-relative `paths` that are not in `set_aside`.

    `set_aside`: paths that look like entries in use and are none, mapped to their status; '' for what is no entry.
    """
    return _count(_entry_folders(paths), set_aside)


def _entry_folders(paths: Iterable[str]) -> dict[str, list[str]]:
    """Group the paths in places of entries by folder: '', or vault-relative with a slash at the end."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folders.setdefault(path[: path.rfind("/") + 1], []).append(path)
    return {folder: found for folder, found in folders.items() if is_entry_place(folder)}


def _count(folders: Mapping[str, Sequence[str]], set_aside: Mapping[str, str]) -> ActiveCounts:
    groups: Counter[str] = Counter()
    for folder, paths in folders.items():
        if count := len(paths) - sum(map(set_aside.__contains__, paths)):
            groups[folder.split("/")[0] or "."] += count
    statuses = Counter(status for status in set_aside.values() if status)
    return ActiveCounts(dict(sorted(groups.items())), groups.total(), dict(sorted(statuses.items())))


def describe_notes(paths: Collection[str], set_aside: Mapping[str, str] = MappingProxyType({})) -> str:
    """Describe what an index holds: `6 notes (2 entries in use, 1 proposal, 1 idea, 2 others)`."""
    active, pending = count_active_paths(paths, set_aside), count_pending_paths(paths)
    entries = counted(active.in_use, "entry", "entries")
    parts = [f"{entries} in use"]
    if pending.notes:
        parts.append(pending.describe())
    # Lists in _meta, archives, the watchlist, notes of research.
    if others := len(paths) - active.in_use - pending.notes:
        parts.append(counted(others, "other"))
    return entries if len(parts) == 1 else f"{counted(len(paths), 'note')} ({', '.join(parts)})"


def count_indexed_entries(index_db: Path) -> int | None:
    """Count the entries that an index knows, pending ones included: for a vault that is not there itself.

    None where the index cannot be read; 0 without one.
    """
    if (known := read_index(index_db)) is None:
        return None
    active, pending = count_active_paths(*known), count_pending_paths(known[0])
    return active.in_use + pending.notes - pending.questions


def read_index(index_db: Path) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, str]] | None:
    """Return the indexed notes with time and size of their files, and the status of those set aside; nothing without an
    index, None where it cannot be read."""
    from ..index.catalog_reader import CatalogReader  # Loads SQLite, which the other counts do not need.

    if not index_db.exists():
        return {}, {}
    try:
        with closing(CatalogReader(index_db)) as reader, reader.snapshot():
            return reader.file_stamps(), reader.set_aside()
    except (IndexUnavailable, SchemaTooNew):
        return None


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
