"""A page of the console: its place in the navigation, and its routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .context import ConsoleContext
from .navigation import NavigationItem


@dataclass(frozen=True, kw_only=True)
class Page(NavigationItem):
    """One page. `context.page(…, page=name)` makes its answers."""

    routes: Callable[[ConsoleContext], Sequence[Route]]


Answer = Callable[[Request], Response]


def routes_of(base: str, look: Answer, **changes: Answer) -> tuple[Route, ...]:
    """Routes for the page `base` (GET) and its changes below it (POST).

    A GET of a change shows the page: without scripts, reloading must not repeat the change.
    """
    posts = (Route(f"{base}/{name}", change, methods=["POST"]) for name, change in changes.items())
    again = (Route(f"{base}/{name}", look, methods=["GET"]) for name in changes)
    return (Route(base, look, methods=["GET"]), *posts, *again)
