"""A stand-in for Gemini's API on loopback, just as much of it as Gemini CLI needs for a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from .loopback_http import LoopbackServer

ANSWER = "Understood."
_ROUTED = json.dumps({"reasoning": "short", "model_choice": "flash"})
"""What the client's router of models wants, in requests that are not streamed."""

Request = dict[str, Any]
Part = dict[str, Any]


def use_tool(name: str, arguments: Mapping[str, object]) -> Part:
    """The part with which the model calls a tool."""
    return {"functionCall": {"name": name, "args": dict(arguments)}}


class StandInGemini(LoopbackServer):
    """`with StandInGemini() as model:` serves on `model.url`; `model.requests` is what each turn sent.

    `model.rule` may choose the part that answers a request; without one, or where it gives None, it is ANSWER.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.rule: Callable[[Request], Part | None] = lambda request: None
        super().__init__(_handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def texts(request: Request) -> list[str]:
    """The texts under the user's role, one per part, the oldest first."""
    return [text for part in _user_parts(request) if isinstance(text := part.get("text"), str)]


def tool_results(request: Request) -> list[str]:
    """What tools gave back to the model, as JSON, the oldest first."""
    return [json.dumps(part["functionResponse"]) for part in _user_parts(request) if "functionResponse" in part]


def _user_parts(request: Request) -> Iterator[Part]:
    for content in request.get("contents", ()):
        if content.get("role") == "user":
            yield from content.get("parts", ())


def _handler(model: StandInGemini) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silent: the requests are kept instead."""

        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            is_turn = ":streamGenerateContent" in self.path
            part: Part = {"text": _ROUTED}
            if is_turn:
                model.requests.append(request)
                part = model.rule(request) or {"text": ANSWER}
            candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
            usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
            answer = json.dumps({"candidates": [candidate], "usageMetadata": usage})
            body = f"data: {answer}\r\n\r\n" if is_turn else answer
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if is_turn else "application/json")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

    return Handler
