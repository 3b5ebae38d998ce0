"""How many entries of a vault are in use.

They are counted in the files, but what the index knows of a file that has not changed since is not read again: of the
vault only the folders are listed, and while no worker runs each note that the index knows is asked for its state.
Reading twenty thousand notes for one figure would take longer than the rest of the page that shows it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ..runtime.errors import IndexUnavailable, SchemaTooNew
from ..runtime.process_lock import lock_holder
from ..runtime.settings import Settings
from ..vault.active import is_entry, is_entry_place
from ..vault.entry import ACTIVE
from ..vault.store import VaultStore
from ..vault.wording import counted
from .pending_counts import PendingCounts, count_pending, count_pending_paths


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
    folders = _entry_folders(notes)
    # A worker indexes what changes within seconds: to look at each file costs most of the time that this takes.
    is_watched = lock_holder(settings.state.worker_lock) is not None
    index = _read_index(Path(settings.state.index_db), with_stamps=not is_watched)
    if is_watched:
        unread = {path for paths in folders.values() for path in paths if path not in index.paths}
    else:
        unread = {*_changed_notes(folders, index.stamps, store.vault)}
    there = {*notes}
    set_aside = {path: status for path, status in index.set_aside.items() if path in there and path not in unread}
    for entry in store.readable(sorted(unread)):
        status = entry.effective_status if is_entry(entry) else ""
        if status != ACTIVE:
            set_aside[entry.path] = status
    return _count(folders, set_aside)


def count_active_paths(paths: Iterable[str], set_aside: Mapping[str, str] = MappingProxyType({})) -> ActiveCounts:
    """Count vault-relative `paths` of entries, but those in `set_aside`.

    `set_aside`: paths that look like entries in use and are none, mapped to their status, '' for what is no entry.
    """
    return _count(_entry_folders(paths), set_aside)


def _entry_folders(paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths where entries in use are kept, by folder: '', or vault-relative with a slash at the end."""
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


@dataclass(frozen=True)
class _Indexed:
    """What an index knows of the notes: their paths, or with them the states of their files; the status of those set
    aside."""

    paths: Collection[str] = frozenset()
    stamps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    set_aside: Mapping[str, str] = field(default_factory=dict)


def _read_index(index_db: Path, *, with_stamps: bool) -> _Indexed:
    """Empty without an index."""
    from ..index.catalog_reader import CatalogReader  # Without an index there is no need for SQLite.

    if not index_db.exists():
        return _Indexed()
    try:
        with closing(CatalogReader(index_db)) as reader, reader.snapshot():
            if with_stamps:
                return _Indexed(stamps=reader.file_stamps(), set_aside=reader.set_aside())
            return _Indexed(paths=reader.all_paths(), set_aside=reader.set_aside())
    except (IndexUnavailable, SchemaTooNew):
        return _Indexed()


def _changed_notes(
    folders: Mapping[str, Sequence[str]], stamps: Mapping[str, tuple[int, int]], vault: Path
) -> Iterator[str]:
    """Paths of the notes whose files are not as their stamps say, or have none."""
    for folder, paths in folders.items():
        with ExitStack() as opened:
            try:
                descriptor = opened.enter_context(_opened(vault / folder))  # from there a path is shortest to follow
            except OSError:
                yield from paths
                continue
            for path in paths:
                try:  # `suppress` would be made anew for each of some twenty thousand files
                    state = os.stat(path[len(folder) :], dir_fd=descriptor)
                except OSError:
                    yield path
                    continue
                if stamps.get(path) != (state.st_mtime_ns, state.st_size):
                    yield path


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of the folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
