"""Count the entries of a vault that are in use. The files decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ..runtime.errors import IndexUnavailable, SchemaTooNew
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


def count_active(store: VaultStore) -> ActiveCounts:
    """Count the entries in use of the vault; reads all of them. Raises VaultUnavailable."""
    return count_active_paths(*read_notes(store))


def read_notes(store: VaultStore) -> tuple[Collection[str], Mapping[str, str]]:
    """Return the paths of all notes, and the status of those set aside, also of those that cannot be read. Raises
    VaultUnavailable."""
    paths = [*store.walk()]
    status_of = {path: "unreadable" for path in paths if is_entry_place(path)}
    for entry in store.readable([*status_of]):
        status_of[entry.path] = entry.effective_status if is_entry(entry) else ""
    return paths, {path: status for path, status in status_of.items() if status != ACTIVE}


def count_active_paths(paths: Iterable[str], set_aside: Mapping[str, str] = MappingProxyType({})) -> ActiveCounts:
    """Count the entries at these vault-relative `paths` that are not in `set_aside`.

    `set_aside`: paths that look like entries in use and are none, mapped to their status; '' for what is no entry.
    """
    in_use = [path for path in paths if path not in set_aside and is_entry_place(path)]
    groups = Counter(path.partition("/")[0] if "/" in path else "." for path in in_use)
    statuses = Counter(status for status in set_aside.values() if status)
    return ActiveCounts(dict(sorted(groups.items())), len(in_use), dict(sorted(statuses.items())))


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


def read_index(index_db: Path) -> tuple[Collection[str], Mapping[str, str]] | None:
    """Return the paths of the indexed notes, and the status of those set aside; nothing without an index, None where it
    cannot be read."""
    from ..index.catalog_reader import CatalogReader  # Loads SQLite, which the other counts do not need.

    if not index_db.exists():
        return (), {}
    try:
        with closing(CatalogReader(index_db)) as reader, reader.snapshot():
            return reader.all_paths(), reader.set_aside()
    except (IndexUnavailable, SchemaTooNew):
        return None
