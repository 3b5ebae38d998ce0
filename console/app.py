"""The console as an application: pages behind the guard."""

from __future__ import annotations

import logging
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from ..runtime.errors import MemoryVaultError
from ..runtime.settings import Settings
from .desk import Desk, Notice
from .keys import Keys
from .pages import PAGES
from .safety import Guard

log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"


def make_app(settings: Settings, keys: Keys, *, authority: str, place: str) -> ASGIApp:
    """The whole console for requests to `http://<authority>/<place>/`; `authority` is host:port as bound."""
    desk = Desk(settings, place=place, pages=PAGES)

    def home(request: Request) -> Response:
        return RedirectResponse(desk.url(PAGES[0].name), 303)

    def not_done(request: Request, error: Exception) -> Response:
        assert isinstance(error, MemoryVaultError)
        return desk.problem(request, error)

    def not_there(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        line = "There is no such page." if status == 404 else "This cannot be done here."
        if not hasattr(request.state, "session"):
            return desk.refused(status, line)
        return desk.page(request, "problem.html", page="", title="Not found", status=status, said=Notice(line, True))

    def failed(request: Request, error: Exception) -> Response:
        # Starlette raises it again, so that the log has the traceback; the page has none.
        return desk.refused(500, "Something went wrong in the console; its terminal says what. Nothing was half done.")

    routes = [
        Mount("/static", StaticFiles(directory=STATIC, follow_symlink=False), name="static"),
        Route("/", home),
        *(route for page in PAGES for route in page.routes(desk)),
    ]
    app = Starlette(
        routes=[Mount(f"/{place}", routes=routes)],
        exception_handlers={MemoryVaultError: not_done, HTTPException: not_there, 500: failed},
    )
    return Guard(app, keys, authority=authority, place=place, refuse=desk.refused)
