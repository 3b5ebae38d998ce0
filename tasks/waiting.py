"""What waits for the user, a page at a time: names from the folders, order and search from the index.

The files are the truth about what waits; the index tells only the order and where a word occurs. What it does not
know yet is read, and comes last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ..index.catalog_reader import CatalogReader
from ..vault.entry import Entry
from ..vault.errors import IndexUnavailable
from ..vault.settings import Settings
from ..vault.store import VaultStore
from ..vault.waiting import PLACES, waiting_folder

WAITING_FOLDERS = frozenset(PLACES)
MOST_READ = 2_000
"""Notes that the index does not know and that are read for the order and the search; more come unordered."""


@dataclass(frozen=True)
class WaitingPage:
    """One page of a queue, the oldest first. `number` counts from 1 and is one that there is."""

    entries: tuple[Entry, ...]
    total: int
    number: int
    pages: int


def waiting_paths(store: VaultStore) -> dict[str, list[str]]:
    """Paths of the notes below each of WAITING_FOLDERS, in one walk. Raises VaultUnavailable."""
    found: dict[str, list[str]] = {folder: [] for folder in WAITING_FOLDERS}
    for path in store.walk_special(WAITING_FOLDERS):
        if folder := waiting_folder(path):
            found[folder].append(path)
    return found


def waiting_order(
    settings: Settings, store: VaultStore, folder: str, paths: Sequence[str], search: str = ""
) -> list[str]:
    """`paths` of one folder by (day, path), of ideas by when they came up; with `search` only those that have all its
    words.
    """
    words = search.split()
    days: Mapping[str, str] = {}
    matching: set[str] = set()
    index = Path(settings.state.index_db)
    with suppress(IndexUnavailable), closing(CatalogReader(index)) as reader, reader.snapshot():
        days = reader.days_in_folder(folder)
        matching = reader.paths_in_folder_with(folder, words) if words else set()
    known = [(days[path], path) for path in paths if path in days and (not words or path in matching)]
    unknown = []
    fresh = [path for path in paths if path not in days]
    for entry in store.readable(fresh[:MOST_READ]):
        text = f"{entry.title}\n{entry.body}".casefold()
        if all(word.casefold() in text for word in words):
            unknown.append(((entry.kind == "idea" and entry.surfaced_at) or entry.created or "", entry.path))
    ordered = [path for _, path in sorted([*known, *unknown])]
    return ordered if words else ordered + fresh[MOST_READ:]


def waiting_page(store: VaultStore, ordered: Sequence[str], number: int, size: int) -> WaitingPage:
    """The entries of one page; what went meanwhile is left out."""
    pages = max(1, math.ceil(len(ordered) / size))
    number = min(max(1, number), pages)
    entries = tuple(store.readable(ordered[(number - 1) * size : number * size]))
    return WaitingPage(entries, len(ordered), number, pages)
