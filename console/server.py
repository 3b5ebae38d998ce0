"""The console as an application behind the guard, served on the loopback address only."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..runtime.errors import MemoryVaultError
from ..runtime.settings import Settings
from .context import ConsoleContext, Notice
from .keys import LINK_SECONDS, Keys
from .pages import PAGES
from .safety import Guard

HOST = "127.0.0.1"
PLACE_BYTES = 8
HEAD_SECONDS = 10.0
"""Time limit for the head of a request."""
MOST_WAITING = 128
"""Most connections without a complete head; beyond that the oldest is closed. A browser opens six."""
STOP_SECONDS = 3
STATIC = Path(__file__).parent / "static"


def make_app(settings: Settings, keys: Keys, *, authority: str, place: str) -> ASGIApp:
    """The console for requests to `http://<authority>/<place>/`; `authority` is host:port as bound."""
    context = ConsoleContext(settings, place=place, pages=PAGES)

    def home(request: Request) -> Response:
        return RedirectResponse(context.url(PAGES[0].name), 303)

    def not_there(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        line = "There is no such page." if status == 404 else "This cannot be done here."
        if not hasattr(request.state, "session"):
            return context.refused(status, line)
        return context.page(request, "problem.html", page="", title="Not found", status=status, said=Notice(line, True))

    def failed(request: Request, error: Exception) -> Response:
        # Starlette raises it again: the log has the traceback, the page has none.
        return context.refused(500, "Something went wrong in the console; its terminal says what. Nothing was changed.")

    routes = [
        Mount("/static", StaticFiles(directory=STATIC, follow_symlink=False), name="static"),
        Route("/", home),
        *(route for page in PAGES for route in page.routes(context)),
    ]
    app = Starlette(
        routes=[Mount(f"/{place}", routes=routes)],
        exception_handlers={MemoryVaultError: context.problem, HTTPException: not_there, 500: failed},
    )
    return Guard(app, keys, authority=authority, place=place, refuse=context.refused)


class PortTaken(MemoryVaultError):
    """The port cannot be used."""


class Http(H11Protocol):
    """uvicorn's HTTP with a time limit for heads. Unreadable data ends a connection: uvicorn would answer twice."""

    _waiting: ClassVar[dict[Http, asyncio.TimerHandle]] = {}
    """Connections that await a head, the oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Await the first head."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Pass the data on, and await the next head if a request is complete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        else:
            self._end_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a head."""
        self._end_wait()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self not in self._waiting and not self.transport.is_closing():
            self._waiting[self] = self.loop.call_later(HEAD_SECONDS, self._give_up)
            if len(self._waiting) > MOST_WAITING:
                next(iter(self._waiting))._give_up()

    def _end_wait(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()

    def _give_up(self) -> None:
        self._end_wait()
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer if no answer was begun, end the connection, and drop the application's answer."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()


@dataclass(frozen=True)
class Serving:
    """A console that is bound to its port and does not answer yet."""

    listener: socket.socket
    server: uvicorn.Server
    keys: Keys
    base: str
    """Its address without a token: `http://127.0.0.1:PORT/<place>/`."""

    def new_link(self) -> str:
        """An address that signs one browser in, once."""
        return f"{self.base}enter?token={self.keys.new_link()}"

    def run(self) -> None:
        """Answer until SIGINT or SIGTERM, or until `server.should_exit`."""
        try:
            self.server.run(sockets=[self.listener])
        except KeyboardInterrupt:  # uvicorn sends itself the signal once more when it has stopped
            pass
        finally:
            self.listener.close()


def prepare(settings: Settings, *, port: int = 0, link_seconds: float = LINK_SECONDS) -> Serving:
    """Bind and build. `port` 0 takes a free one. Raises PortTaken."""
    # asyncio sets TCP_NODELAY only if the protocol is named. Without it the end of a page waits for the browser's
    # acknowledgement of the beginning, 40 ms on Linux.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # so that an early browser waits
    except OSError as error:
        listener.close()
        raise PortTaken(
            f"port {port} of {HOST} cannot be used ({error.strerror}): take another, or none for a free one"
        ) from error
    authority = f"{HOST}:{listener.getsockname()[1]}"
    place = secrets.token_hex(PLACE_BYTES)
    keys = Keys(time.monotonic, link_seconds=link_seconds)
    config = uvicorn.Config(
        make_app(settings, keys, authority=authority, place=place),
        http=Http,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    return Serving(listener, uvicorn.Server(config), keys, f"http://{authority}/{place}/")
