"""One page of a long list, such as that of the pending notes of a special folder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..runtime.normal_form import normal_form
from ..vault.entry import Entry
from ..vault.store import VaultStore

Row = TypeVar("Row")


@dataclass(frozen=True)
class Listed(Generic[Row]):
    """One page of a list of `total`. `number` is in 1..`pages`."""

    rows: Sequence[Row]
    total: int
    number: int
    pages: int


def nearest_page(total: int, number: int, size: int) -> tuple[int, int]:
    """Return the number of the page that exists nearest to `number`, and how many there are."""
    pages = max(1, -(-total // size))
    return min(max(1, number), pages), pages


def page_of(rows: Sequence[Row], number: int, size: int) -> Listed[Row]:
    """Return the page with this number, else the nearest one."""
    number, pages = nearest_page(len(rows), number, size)
    return Listed(rows[(number - 1) * size : number * size], len(rows), number, pages)


@dataclass(frozen=True)
class OpenPage:
    """A page of pending notes, one of which is open."""

    page: Listed[Entry]
    entry: Entry | None
    """The open note; None on an empty page."""
    place: int = 0
    """Its position among all of them, from 1."""
    before: str | None = None
    after: str | None = None
    """Paths of its neighbours."""


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


def open_pending(store: VaultStore, ordered: Sequence[str], wanted: str, number: int, size: int) -> OpenPage:
    """Return the page that holds the note `wanted`, open; else page `number` with its first note."""
    if wanted in ordered:
        number = ordered.index(wanted) // size + 1
    page = load_pending_page(store, ordered, number, size)
    entry = next((one for one in page.rows if one.path == wanted), None) or next(iter(page.rows), None)
    if entry is None:
        return OpenPage(page, None)
    at = ordered.index(entry.path)
    after = next((following.path for following in store.readable(ordered[at + 1 :])), None)
    return OpenPage(page, entry, at + 1, ordered[at - 1] if at else None, after)
