"""What the navigation says of a page: its name, its key, and how much waits there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..services.pending_counts import PendingCounts


@dataclass(frozen=True, kw_only=True)
class NavigationItem:
    """One page's place in the navigation. `name` is its address below the base."""

    name: str
    title: str
    key: str
    """The letter that goes there, after `g`."""
    waiting: Callable[[PendingCounts], int] | None = None
    """How many things wait on it; shown beside its name."""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of this page and what they do, for the help."""
    hidden: bool = False
    """It is reached from other pages and stands in no navigation."""
