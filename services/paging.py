"""One page of a long list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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
