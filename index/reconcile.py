"""Reconcile the index with the files.

A walk compares each file with its row of `entry_meta` (mtime, size, then content hash) and indexes what differs. It is
incremental, so it may run every few minutes and after each change that the watcher reports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..runtime.killpoint import kill_point
from ..runtime.paths import is_text, read_regular, require_folder
from ..vault.entry import content_hash, parse_entry
from .store import FORGOTTEN_STATUSES, FileState, IndexStore

MAX_FILE_BYTES = 4_000_000
"""Size of the largest file that is indexed."""
BATCH_FILES = 100
"""Files per transaction: other writers get their turn in between."""
_SAME_INSTANT_SECONDS = 2.0
"""A file written this short a time before it was indexed may have been written again since without a
new mtime (coarse clocks); it is read again. git calls such files racily clean."""

Walk = Callable[[], Iterable[str]]
"""Yields the vault-relative path of every file that is to be indexed (VaultStore.walk)."""


@dataclass
class ReconcileReport:
    """Numbers of files by what was done, so far. `failed`: paths that could not be read, whose rows are kept, and those
    that are not UTF-8, which no database stores."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: list[str] = field(default_factory=list)
    complete: bool = True
    removed_paths: list[str] = field(default_factory=list)
    put_away: int = 0
    """Number of indexed or moved files that the user has dismissed or rejected."""

    @property
    def touched(self) -> int:
        return self.added + self.changed + self.moved + self.removed


def reconcile(
    store: IndexStore,
    vault: Path,
    walk: Walk,
    *,
    force: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> ReconcileReport:
    """Walk the whole vault. With `force` every file is indexed again, even if it is unchanged.

    A file that is gone is removed, a file that only moved keeps its vectors. Raises IndexUnavailable, and
    VaultUnavailable when there is no vault (then nothing is removed).
    """
    require_folder(vault)
    paths = list(dict.fromkeys(walk()))
    known = store.files()
    there = set(paths)
    gone = {path: state for path, state in known.items() if path not in there}
    work = _Reconciliation(store, vault, gone, force)
    for start in range(0, len(paths), BATCH_FILES):
        if should_stop():
            work.report.complete = False
            return work.report
        with store.transaction():
            for path in paths[start : start + BATCH_FILES]:
                work.look_at(path, known.get(path))
            kill_point("index-rebuild" if force else "index-reconcile")
    require_folder(vault)  # One that went away meanwhile had no files to be walked.
    with store.transaction():
        for path in list(gone):
            work.forget(path)
    store.collect_orphans()
    return work.report


class _Reconciliation:
    """One walk in progress: what it has done so far."""

    def __init__(self, store: IndexStore, vault: Path, gone: dict[str, FileState], force: bool) -> None:
        self.store = store
        self.vault = vault
        self.gone = gone
        self._gone_by_hash: dict[str, list[str]] = {}
        for path, state in gone.items():
            self._gone_by_hash.setdefault(state.content_hash, []).append(path)
        self.force = force
        self.report = ReconcileReport()

    def look_at(self, path: str, known: FileState | None) -> None:
        """Index the file if it differs from its row."""
        if not is_text(path):
            self.report.failed.append(path)
            return
        if known is not None and not self.force and _is_unchanged(self.vault / path, known):
            self.report.unchanged += 1
            return
        try:
            data, status = _read(self.vault / path)
        except FileNotFoundError:
            # Deleted since the walk began.
            self._remove(path)
            return
        except OSError:
            self.report.failed.append(path)
            return
        found_hash = content_hash(data)
        if known is not None and not self.force and known.indexed_at and known.content_hash == found_hash:
            self.store.touch(path, mtime_ns=status.st_mtime_ns, size=status.st_size)
            self.report.unchanged += 1
            return
        origin = None if known is not None else self._moved_from(found_hash)
        if origin is not None:
            self.store.remove(origin)  # Its texts keep their vectors.
            del self.gone[origin]
            self.report.moved += 1
        elif known is None:
            self.report.added += 1
        else:
            self.report.changed += 1
        entry = parse_entry(path, data)
        self.report.put_away += entry.effective_status in FORGOTTEN_STATUSES
        self.store.upsert_entry(entry, mtime_ns=status.st_mtime_ns, size=status.st_size)

    def forget(self, path: str) -> None:
        del self.gone[path]
        self._remove(path)

    def _remove(self, path: str) -> None:
        if self.store.remove(path):
            self.report.removed += 1
            self.report.removed_paths.append(path)

    def _moved_from(self, found_hash: str) -> str | None:
        return next((path for path in self._gone_by_hash.get(found_hash, ()) if path in self.gone), None)


def _is_unchanged(file: Path, known: FileState) -> bool:
    if not known.indexed_at or known.indexed_at - known.mtime_ns / 1e9 < _SAME_INSTANT_SECONDS:
        return False
    try:
        status = os.stat(file)
    except OSError:
        return False
    return status.st_mtime_ns == known.mtime_ns and status.st_size == known.size


def _read(file: Path) -> tuple[bytes, os.stat_result]:
    """Read a file; its status is taken before, so that a write during the reading is noticed later."""
    data, status = read_regular(file, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(f"{file} is larger than {MAX_FILE_BYTES} bytes")
    return data, status
