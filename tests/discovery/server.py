"""A web server on loopback whose pages a test sets, and which tells what it was asked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memoryvault.tests.support.loopback_http import LoopbackServer, QuietHandler

Write = Callable[[bytes], object]


@dataclass
class Reply:
    """The response of a path. `stream` writes the body itself, for any length of time."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    stream: Callable[[Write], None] | None = None


@dataclass
class Site:
    """Pages by path; `asked` are the paths and headers of all requests."""

    port: int
    pages: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def put(self, path: str, body: str | bytes, status: int = 200, **headers: str) -> str:
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = Reply(data, status, {name.replace("_", "-"): value for name, value in headers.items()})
        return self.url(path)

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def serving() -> Iterator[Site]:
    """Serve until the block ends."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            reply = site.pages.get(self.path) or site.pages.get(self.path.split("?")[0]) or Reply(b"", 404)
            etag = reply.headers.get("etag")
            unchanged = etag is not None and self.headers.get("if-none-match") == etag
            self.send_response(304 if unchanged else reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if unchanged:
                self.end_headers()
            elif reply.stream is not None:
                self.end_headers()
                try:
                    reply.stream(self.wfile.write)
                except OSError:  # The client has closed the connection.
                    self.close_connection = True
            else:
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

    with LoopbackServer(Handler) as server:
        site = Site(server.port)
        yield site
