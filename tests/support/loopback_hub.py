"""A model hub on 127.0.0.1: what the download needs of one, and the ways in which one may fail."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from .loopback_http import LoopbackServer, QuietHandler

BYTES = "application/octet-stream"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class LoopbackHub:
    """Serves `folder` as the model `name`."""

    name: str
    folder: Path
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path, Range header of each."""
    cut_after: int | None = None
    """Bytes of the weights after which the connection breaks, for each request that begins at 0."""
    wrong_checksum: bool = False
    ignores_ranges: bool = False
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def files(self) -> list[str]:
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())

    def digest(self, path: str) -> tuple[str, bool]:
        """The checksum as a hub names it, and whether the file is a large one (sha256 of its bytes)."""
        data = (self.folder / path).read_bytes()
        if path.endswith(".safetensors"):
            if self.wrong_checksum:
                data += b"!"
            return hashlib.sha256(data).hexdigest(), True
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(), False

    def description(self) -> dict[str, Any]:
        siblings = []
        for path in self.files():
            digest, large = self.digest(path)
            size = (self.folder / path).stat().st_size
            row: dict[str, Any] = {"rfilename": path, "size": size, "blobId": "f" * 40 if large else digest}
            row |= {"lfs": {"sha256": digest, "size": size, "pointerSize": 134}} if large else {}
            siblings.append(row)
        return {"id": self.name, "sha": COMMIT, "siblings": siblings}

    @contextmanager
    def serving(self) -> Iterator[LoopbackHub]:
        with LoopbackServer(_handler(self)) as server:
            self.port = server.port
            yield self


def _handler(hub: LoopbackHub) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            hub.requests.append((self.command, self.path, self.headers.get("Range", "")))
            path = self.path.partition("?")[0]
            prefix = f"/{hub.name}/resolve/{COMMIT}/"
            if path == f"/api/models/{hub.name}/revision/main":
                self.send("application/json", json.dumps(hub.description()))
            elif path.startswith(prefix) and path.removeprefix(prefix) in hub.files():
                self._file(path.removeprefix(prefix))
            else:
                self.send("text/plain", "not here", 404)

        def _file(self, path: str) -> None:
            data = (hub.folder / path).read_bytes()
            headers = {"ETag": f'"{hub.digest(path)[0]}"', "X-Repo-Commit": COMMIT}
            asked = self.headers.get("Range", "")
            if asked and not hub.ignores_ranges:
                begin = int(asked.removeprefix("bytes=").rstrip("-"))
                headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
                self.send(BYTES, data[begin:], 206, headers)
                return
            cut = hub.cut_after if path.endswith(".safetensors") else None
            self.send(BYTES, data[:cut], 200, {**headers, "Content-Length": str(len(data))})

    return Handler
