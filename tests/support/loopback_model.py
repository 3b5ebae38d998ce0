"""An OpenAI-compatible endpoint on 127.0.0.1, and the ways in which one may fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from .loopback_http import LoopbackServer, QuietHandler

Answer = Mapping[str, Any]
JSON = "application/json"
USAGE = {"prompt_tokens": 700, "completion_tokens": 40, "total_tokens": 740}


def nothing(_: Mapping[str, Any]) -> Answer:
    return {"candidates": []}


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The transcript that was sent."""
        return [json.loads(line) for line in self.prompt.splitlines()]


@dataclass
class LoopbackModel:
    """Answers each request by `answer`, unless `faults` holds something for it first."""

    answer: Callable[[Mapping[str, Any]], Answer] = nothing
    streams: bool = True
    usage: bool = True
    faults: list[str] = field(default_factory=list)
    """One for each of the next requests: ok, 429, 429-soon, 500, redirect, truncated, no-finish, garbage, not-object,
    slow, silent, huge, cut, dialect, error-event."""
    elsewhere: str = ""
    """Where `redirect` points to."""
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0
    """Requests that were being answered at the same time."""
    port: int = 0
    _open: int = 0
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def count(self, change: int) -> None:
        with self._counting:
            self._open += change
            self.most_at_once = max(self.most_at_once, self._open)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @contextmanager
    def serving(self) -> Iterator[LoopbackModel]:
        self._over = threading.Event()
        with LoopbackServer(_handler(self)) as server:
            self.port = server.port
            try:
                yield self
            finally:
                self._over.set()

    def wait(self, seconds: float) -> bool:
        """Pause; True once the test is over."""
        return self._over.wait(seconds)


def _handler(model: LoopbackModel) -> type[BaseHTTPRequestHandler]:
    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.body())
            model.requests.append(Request(self.path, dict(self.headers), body))
            fault = model.faults.pop(0) if model.faults else "ok"
            model.count(1)
            try:
                self._answer(body, fault)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                model.count(-1)

        def _answer(self, body: Mapping[str, Any], fault: str) -> None:
            match fault:
                case "429" | "429-soon":
                    self.send(JSON, "{}", 429, {"Retry-After": "0.05" if fault == "429-soon" else "3600"})
                case "500":
                    self.send(JSON, "{}", 500)
                case "redirect":
                    self.send(JSON, "{}", 307, {"Location": model.elsewhere})
                case "dialect" if "max_tokens" in body:
                    self.send(JSON, '{"error": {"message": "use max_completion_tokens"}}', 400)
                case "silent":
                    model.wait(60)
                case "huge":
                    self._begin(JSON)
                    while not model.wait(0):
                        self.wfile.write(b" " * 65536)
                case _:
                    text = {"garbage": "Here you go: none!", "not-object": "[1]"}.get(fault) or json.dumps(
                        model.answer(body)
                    )
                    if fault == "truncated":
                        text = text[: len(text) // 2]
                    if model.streams:
                        self._stream(text, fault)
                    else:
                        self._whole(text, fault)

        def _stream(self, text: str, fault: str) -> None:
            self._begin("text/event-stream")
            third = len(text) // 3 + 1
            for piece in (text[:third], text[third : 2 * third], text[2 * third :]):
                self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
                while fault == "slow" and not model.wait(0.05):
                    self._event({"choices": [{"index": 0, "delta": {"content": " "}, "finish_reason": None}]})
                if fault == "cut":
                    self.connection.close()
                    return
            if fault == "error-event":
                self._event({"error": {"message": "the model was unloaded"}})
            if fault != "no-finish":
                reason = "length" if fault == "truncated" else "stop"
                self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
                if model.usage:
                    self._event({"choices": [], "usage": USAGE})
            self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, value: Mapping[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
            self.wfile.flush()

        def _whole(self, text: str, fault: str) -> None:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            document = json.dumps({"choices": [choice], **({"usage": USAGE} if model.usage else {})}).encode()
            if fault == "cut":
                document = document[:-40]
            self._begin(JSON)
            self.wfile.write(document)

        def _begin(self, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()

    return Handler
