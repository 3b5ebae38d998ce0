"""What a page of the console is: its place in the navigation, and its routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.routing import Route

from ..tasks.pending_counts import PendingCounts
from .desk import Desk


@dataclass(frozen=True)
class Page:
    """One page. `name` is its address below the base and how `desk.page(…, page=…)` calls it."""

    name: str
    title: str
    key: str
    """The letter that goes there, after `g`."""
    routes: Callable[[Desk], Sequence[Route]]
    waiting: Callable[[PendingCounts], int] | None = None
    """How many things wait on it; shown beside its name."""
    keys: tuple[tuple[str, str], ...] = ()
    """Keys of this page and what they do, for the help."""
    hidden: bool = False
    """It is reached from other pages and stands in no navigation."""
