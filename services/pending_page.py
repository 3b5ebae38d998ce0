"""Page through the pending notes of one special folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..runtime.normal_form import normal_form
from ..vault.entry import Entry
from ..vault.pending import PENDING_FOLDERS, pending_folder
from ..vault.store import VaultStore
from .paging import Listed, page_of


def list_pending_paths(store: VaultStore) -> dict[str, list[str]]:
    """Return the paths of the notes below each of PENDING_FOLDERS, in one walk. Raises VaultUnavailable."""
    paths_by_folder: dict[str, list[str]] = {folder: [] for folder in PENDING_FOLDERS}
    for path in store.walk_special(frozenset(PENDING_FOLDERS)):
        if folder := pending_folder(path):
            paths_by_folder[folder].append(path)
    return paths_by_folder


def order_pending(store: VaultStore, paths: Collection[str], search: str = "") -> list[str]:
    """Sort `paths` by (day, path), those that cannot be read last; an idea's day is that of its session.

    With `search`, keep only those that contain all its words.
    """
    words = [normal_form(word).casefold() for word in search.split()]
    found = []
    for entry in store.readable(paths):
        text = normal_form(f"{entry.title}\n{entry.body}").casefold()
        if all(word in text for word in words):
            found.append(((entry.kind == "idea" and entry.surfaced_at) or entry.created or "", entry.path))
    ordered = [path for _, path in sorted(found)]
    return ordered if words else [*ordered, *sorted(set(paths).difference(ordered))]


def likeliest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Sort notes of the inbox: what was seen often, then by the probability that the user wants it."""
    return sorted(entries, key=lambda entry: (-entry.occurrences, -entry.probability, entry.path))


def load_pending_page(store: VaultStore, ordered: Sequence[str], number: int, size: int) -> Listed[Entry]:
    """Read the entries of page `number` (clamped) of `size` paths, without files that are gone."""
    page = page_of(ordered, number, size)
    return Listed(tuple(store.readable(page.rows)), page.total, page.number, page.pages)
