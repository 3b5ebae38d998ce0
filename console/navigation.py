"""An item of the navigation: name, key, and how much waits on the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..services.pending_counts import PendingCounts


@dataclass(frozen=True, kw_only=True)
class NavigationItem:
    """One page in the navigation. `name` is its address below the base."""

    name: str
    title: str
    key: str
    """The key that leads there, after `g`."""
    waiting: Callable[[PendingCounts], int] | None = None
    """Number of things that wait on the page, shown beside its name."""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of the page and what they do, for the help."""
    hidden: bool = False
    """Whether the page is reached from other pages only."""
