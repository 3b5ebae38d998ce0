"""Web servers on 127.0.0.1 that behave, and that misbehave, as a test says."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from .loopback_http import LoopbackServer, QuietHandler

HOST = "127.0.0.1"


@dataclass
class Reply:
    """One answer; `pieces` are sent with a pause before each."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    type: str = "text/html; charset=utf-8"
    pieces: Callable[[], Iterator[bytes]] | None = None
    pause: float = 0.0
    reset: bool = False
    """Break the connection with a TCP reset instead."""
    drip_headers: bool = False
    """Send header after header, one byte at a time, without end."""


@dataclass
class Site:
    """A running server; `replies` by path without the query, or a function of path and query."""

    replies: dict[str, Reply | Callable[[str], Reply]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path with query, and headers in lower case, of each."""
    port: int = 0
    scheme: str = "http"
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{HOST}:{self.port}"

    @property
    def allowed(self) -> frozenset[tuple[str, int]]:
        return frozenset({(HOST, self.port)})

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def put(self, path: str, body: str | bytes, status: int = 200, **headers: str) -> str:
        """Serve it at this path, without a type, and return its address."""
        data = body.encode() if isinstance(body, str) else body
        self.replies[path] = Reply(data, status, {name.replace("_", "-"): text for name, text in headers.items()}, "")
        return self.url + path


@contextmanager
def site(replies: dict[str, Reply | Callable[[str], Reply]] | None = None, tls: Path | None = None) -> Iterator[Site]:
    """Serve until the end of the block; with `tls`, a PEM file with key and certificate, over https."""
    running = Site(dict(replies or {}))
    with LoopbackServer(_handler(running), tls) as server:
        running.port = server.port
        running.scheme = "https" if tls else "http"
        try:
            yield running
        finally:
            running.ending.set()


def _handler(running: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            running.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            reply = running.replies.get(self.path.partition("?")[0], Reply(status=404))
            if callable(reply):
                reply = reply(self.path)
            with contextlib.suppress(OSError):
                self._send(reply)
            self.close_connection = True

        def do_POST(self) -> None:
            self.body()
            self.do_GET()

        def _send(self, reply: Reply) -> None:
            if reply.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                return
            self.send_response(reply.status)
            if reply.drip_headers:
                self.flush_headers()
                while not running.ending.wait(reply.pause):
                    self.wfile.write(b"x")
                return
            if reply.type:
                self.send_header("Content-Type", reply.type)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            for piece in reply.pieces() if reply.pieces else (reply.body,):
                if reply.pause and running.ending.wait(reply.pause):
                    return
                self.wfile.write(piece)

    return Handler


def slowly(text: bytes = b".") -> Callable[[], Iterator[bytes]]:
    """Pieces without end."""

    def pieces() -> Iterator[bytes]:
        while True:
            yield text

    return pieces


def page(title: str, *paragraphs: str) -> bytes:
    body = "".join(f"<p>{text}</p>" for text in paragraphs)
    return (
        f"<!doctype html><html><head><title>{title}</title></head><body><nav>Home About</nav>"
        f"<article><h1>{title}</h1>{body}</article></body></html>"
    ).encode()
