"""What all stand-ins for services have in common: an HTTP server on loopback, in a thread of its own."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

POLL_SECONDS = 0.02


class LoopbackServer:
    """`with LoopbackServer(handler) as server:` answers on `server.port` of 127.0.0.1 while the block runs."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
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

    def send(self, content_type: str, body: str | bytes, status: int = 200) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
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
        self.requests: list[Request] = []
        self.rule: Callable[[Request], Part | None] = lambda request: None
        model = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                self.send("text/plain", "", 404)

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
