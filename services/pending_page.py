"""Page through the pending notes of one special folder: the files give the paths, the index order and search.

Only the files decide which notes are pending; the index adds their days and words. Notes that are not indexed yet are
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from ..index.catalog_reader import CatalogReader
from ..runtime.errors import IndexUnavailable
from ..runtime.normal_form import normal_form
from ..runtime.settings import Settings
from ..vault.entry import Entry
from ..vault.pending import PENDING_FOLDERS, pending_folder
from ..vault.store import VaultStore
from .paging import Listed, page_of

MOST_READ = 2_000
"""How many notes that are not indexed are read for order and search; further ones come last, unordered."""


def list_pending_paths(store: VaultStore) -> dict[str, list[str]]:
    """Return the paths of the notes below each of PENDING_FOLDERS, in one walk. Raises VaultUnavailable."""
    paths_by_folder: dict[str, list[str]] = {folder: [] for folder in PENDING_FOLDERS}
    for path in store.walk_special(frozenset(PENDING_FOLDERS)):
        if folder := pending_folder(path):
            paths_by_folder[folder].append(path)
    return paths_by_folder


def order_pending(
    settings: Settings, store: VaultStore, folder: str, paths: Sequence[str], search: str = ""
) -> list[str]:
    """Sort `paths` of one folder by (day, path); an idea's day is that of its session.

    With `search`, keep only those that contain all its words.
    """
    words = search.split()
    days: Mapping[str, str] = {}
    matching: set[str] = set()
    index = Path(settings.state.index_db)
    with suppress(IndexUnavailable), closing(CatalogReader(index)) as reader, reader.snapshot():
        days = reader.days_in_folder(folder)
        matching = reader.paths_in_folder_with(folder, words) if words else set()
    indexed = [(days[path], path) for path in paths if path in days and (not words or path in matching)]
    read = []
    unindexed = [path for path in paths if path not in days]
    for entry in store.readable(unindexed[:MOST_READ]):
        text = normal_form(f"{entry.title}\n{entry.body}").casefold()
        if all(normal_form(word).casefold() in text for word in words):
            read.append(((entry.kind == "idea" and entry.surfaced_at) or entry.created or "", entry.path))
    ordered = [path for _, path in sorted([*indexed, *read])]
    return ordered if words else ordered + unindexed[MOST_READ:]


def likeliest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Sort notes of the inbox: what was seen often, then by the probability that the user wants it."""
    return sorted(entries, key=lambda entry: (-entry.occurrences, -entry.probability, entry.path))


def load_pending_page(store: VaultStore, ordered: Sequence[str], number: int, size: int) -> Listed[Entry]:
    """Read the entries of page `number` (clamped) of `size` paths, without files that are gone."""
    page = page_of(ordered, number, size)
    return Listed(tuple(store.readable(page.rows)), page.total, page.number, page.pages)
