"""What all stand-ins for services have in common: an HTTP server on loopback, in a thread of its own."""

import json
import ssl
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

POLL_SECONDS = 0.02


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or is killed, is no error of ours."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


class LoopbackServer:
    """`with LoopbackServer(handler) as server:` answers on `server.port` of 127.0.0.1 while the block runs.

    With `tls`, a PEM file with key and certificate, it does so over https.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler], tls: Path | None = None) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_SECONDS,), daemon=True)

    @property
    def port(self) -> int:
        """Drawn by the system."""
        return self._server.server_port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    """Logs nothing: the servers keep the requests instead."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(
        self, content_type: str, body: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        own = {"Content-Type": content_type, "Content-Length": str(len(data))}
        for name, value in {**own, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


Request = dict[str, Any]
Part = dict[str, Any]


class StandInService(LoopbackServer):
    """A model's API: `model.requests` is what it was sent, `model.rule` may choose what it says to a request.

    Without a rule, or where it gives None, the model says its ANSWER.
    """

    root = ""
    """The path of `url`."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.rule: Callable[[Any], Any] = lambda request: None
        model = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                self.send("text/plain", "", 404)

            do_HEAD = do_GET

            def do_POST(self) -> None:
                self.send(*model.answer(self.path, json.loads(self.body())))

        super().__init__(Handler)

    def call_tools(self, *calls: Part) -> None:
        """The model calls these tools, one after the other, and then answers."""
        left = list(calls)
        self.rule = lambda request: left.pop(0) if left else None

    @property
    def url(self) -> str:
        """The address that clients are given."""
        return f"http://127.0.0.1:{self.port}{self.root}"

    def answer(self, path: str, request: Request) -> tuple[str, str]:
        """Return the content type and the body for a request."""
        raise NotImplementedError
