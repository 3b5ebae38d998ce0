"""What a page of the console is: its place in the navigation, and its routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.routing import Route

from .desk import Desk
from .navigation import NavigationItem


@dataclass(frozen=True, kw_only=True)
class Page(NavigationItem):
    """One page. `desk.page(…, page=name)` makes its answers."""

    routes: Callable[[Desk], Sequence[Route]]
