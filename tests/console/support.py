"""The real application on real files, called without a browser, and notes for it."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from memoryvault.console.keys import Keys
from memoryvault.console.server import Serving, make_app, prepare
from memoryvault.runtime.settings import Settings
from memoryvault.tests.review.support import Bed
from memoryvault.vault.entry import Entry

AUTHORITY = "127.0.0.1:8123"
ORIGIN = f"http://{AUTHORITY}"
PLACE = "here"
BASE = f"/{PLACE}"


class Front:
    """A client of the whole application, guard included. `now` is the clock of its keys."""

    def __init__(self, settings: Settings) -> None:
        self.now = 1000.0
        self.keys = Keys(lambda: self.now)
        app = make_app(settings, self.keys, authority=AUTHORITY, place=PLACE)
        self.client = TestClient(app, base_url=ORIGIN, follow_redirects=False)
        self.csrf = ""

    def __enter__(self) -> Front:
        self.client.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.client.__exit__(*error)

    def enter(self) -> None:
        """By a new link, as the command prints it."""
        done = self.client.get(f"{BASE}/enter", params={"token": self.keys.new_link()})
        assert done.status_code == 200, done.text
        session = self.keys.session(self.client.cookies["memory-console"])
        assert session is not None
        self.csrf = session.csrf

    def get(self, address: str, **query: str) -> Any:
        return self.client.get(f"{BASE}/{address}", params=query)

    def post(self, address: str, headers: Mapping[str, str] | None = None, **fields: str) -> Any:
        return self.client.post(
            f"{BASE}/{address}", data={"csrf": self.csrf, **fields}, headers={"Origin": ORIGIN, **(headers or {})}
        )

    def decide(self, entry: Entry, decision: str, **fields: str) -> Any:
        """One of the review's buttons, for the note as it was seen."""
        seen = {"item": entry.path, "hash": entry.content_hash}
        return self.post("review/decide", None, **seen, decision=decision, **fields)


@contextmanager
def serving(bed: Bed, **options: float) -> Iterator[Serving]:
    """The console in this process, for what its command does not offer."""
    made = prepare(bed.settings, **options)  # type: ignore[arg-type]  # open on purpose
    made.server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # threads may not
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.server.should_exit = True
        thread.join(10)
    assert not thread.is_alive()


def connection_to(made: Serving) -> socket.socket:
    host, port = made.base.removeprefix("http://").split("/")[0].split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def said(answer: Any) -> str:
    """The line that tells what was done."""
    found = re.search(r'id="said"[^>]*>(?:<p[^>]*>(.*?)</p>)?</div>', answer.text, re.DOTALL)
    assert found is not None, answer.text[:500]
    return unescape(found[1] or "")


def visible(answer: Any) -> str:
    """The text of a page, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def proposal(bed: Bed, name: str, text: str = "", **fields: object) -> Entry:
    body = f"# {name.replace('-', ' ').capitalize()}\n\n{text or f'Always do {name}.'}"
    path = bed.note(
        f"personal-private/_review/{name}.md", body, **{"kind": "preferences", "status": "pending"} | fields
    )
    return bed.store.read(path)
