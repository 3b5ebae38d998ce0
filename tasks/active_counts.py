"""How many entries of a vault are in use.

They are counted in the files, but what the index knows of a file that has not changed since is not read again: of the
vault only the folders are listed, and while no worker runs each note that the index knows is asked for its state.
Reading twenty thousand notes for one figure would take longer than the rest of the page that shows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..vault.active import is_entry, is_entry_place
from ..vault.entry import ACTIVE
from ..vault.errors import IndexUnavailable, SchemaTooNew
from ..vault.lock import lock_holder
from ..vault.settings import Settings
from ..vault.store import VaultStore
from ..vault.wording import counted
from .pending_counts import PendingCounts, count_pending, count_pending_paths

if TYPE_CHECKING:
    from ..index.catalog_reader import FileStamp


@dataclass(frozen=True)
class ActiveCounts:
    """Numbers of entries in use by group, and of those set aside by status."""

    groups: Mapping[str, int]
    set_aside: Mapping[str, int] = field(default_factory=dict)
    """By status, the entries that are kept where those in use are but have another status than `active`."""

    @property
    def entries(self) -> int:
        """Number of entries in use: those that a recall may show."""
        return sum(self.groups.values())


def count_active(settings: Settings, store: VaultStore) -> ActiveCounts:
    """Count the entries in use of the vault. Raises VaultUnavailable.

    While a worker runs, the notes that the index knows are counted as it was last told of them.
    """
    return _count_active_notes(settings, store, [*store.walk()])


def count_active_and_pending(settings: Settings, store: VaultStore) -> tuple[ActiveCounts, PendingCounts]:
    """`count_active` and `count_pending` of one walk. Raises VaultUnavailable."""
    listed = store.list_notes()
    return _count_active_notes(settings, store, listed.notes), count_pending(store, listed)


def _count_active_notes(settings: Settings, store: VaultStore, notes: Sequence[str]) -> ActiveCounts:
    unread = {path for path in notes if is_entry_place(path)}
    stamps, known_set_aside = _read_index(Path(settings.state.index_db))
    # A worker indexes what changes within seconds: to look at each file costs most of the time that this takes.
    is_watched = lock_holder(settings.state.worker_lock) is not None
    unchanged = {path for path, _, _ in stamps} if is_watched else _unchanged(stamps, unread, store.vault)
    set_aside = {path: status for path, status in known_set_aside.items() if path in unread and path in unchanged}
    unread -= unchanged
    for entry in store.readable(sorted(unread)):
        status = entry.effective_status if is_entry(entry) else ""
        if status != ACTIVE:
            set_aside[entry.path] = status
    return count_active_paths(notes, set_aside)


def count_active_paths(paths: Iterable[str], set_aside: Mapping[str, str] = MappingProxyType({})) -> ActiveCounts:
    """Count vault-relative `paths` of entries, but those in `set_aside`.

    `set_aside`: paths that look like entries in use and are none, mapped to their status, '' for what is no entry.
    """
    by_folder = Counter(path.rpartition("/")[0] for path in paths if path not in set_aside)
    groups: Counter[str] = Counter()
    for folder, count in by_folder.items():
        if is_entry_place(folder + "/"):
            groups[folder.split("/")[0] or "."] += count
    statuses = Counter(status for status in set_aside.values() if status)
    return ActiveCounts(dict(sorted(groups.items())), dict(sorted(statuses.items())))


def describe_notes(paths: Collection[str], set_aside: Mapping[str, str] = MappingProxyType({})) -> str:
    """What an index holds, in parts that add up: `6 notes (2 entries in use, 1 proposal, 1 idea, 2 others)`."""
    active, pending = count_active_paths(paths, set_aside), count_pending_paths(paths)
    entries = counted(active.entries, "entry", "entries")
    parts = [f"{entries} in use"]
    if pending.notes:
        parts.append(pending.describe())
    # Lists in _meta, archives, the watchlist, what research found out about an idea.
    if others := len(paths) - active.entries - pending.notes:
        parts.append(counted(others, "other"))
    return entries if len(parts) == 1 else f"{counted(len(paths), 'note')} ({', '.join(parts)})"


def count_indexed_entries(index_db: Path) -> int | None:
    """Number of entries that an index knows, pending ones included; None where it cannot be read, 0 without one.

    For a vault that is not there itself.
    """
    from ..index.catalog_reader import CatalogReader  # The other counts need no SQLite.

    if not index_db.exists():
        return 0
    try:
        with closing(CatalogReader(index_db)) as reader, reader.snapshot():
            paths = reader.all_paths()
            active, pending = count_active_paths(paths, reader.set_aside()), count_pending_paths(paths)
    except (IndexUnavailable, SchemaTooNew):
        return None
    return active.entries + pending.notes - pending.questions


def _read_index(index_db: Path) -> tuple[Sequence[FileStamp], Mapping[str, str]]:
    """The state of each indexed file, and the status of those set aside; empty without an index."""
    from ..index.catalog_reader import CatalogReader  # Without an index there is no need for SQLite.

    if not index_db.exists():
        return (), {}
    try:
        with closing(CatalogReader(index_db)) as reader, reader.snapshot():
            return reader.file_stamps(), reader.set_aside()
    except (IndexUnavailable, SchemaTooNew):
        return (), {}


def _unchanged(stamps: Iterable[FileStamp], among: Collection[str], vault: Path) -> set[str]:
    """Paths among those given whose files are still as their stamps say; none where the vault is gone."""
    unchanged = set()
    with suppress(OSError), _folder(vault) as root:  # from there each path is shorter to follow
        for path, mtime_ns, size in stamps:
            if path not in among:
                continue
            try:  # `suppress` would be made anew for each of some twenty thousand files
                state = os.stat(path, dir_fd=root)
            except OSError:
                continue
            if state.st_mtime_ns == mtime_ns and state.st_size == size:
                unchanged.add(path)
    return unchanged


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """A descriptor of the folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
