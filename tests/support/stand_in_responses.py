"""A stand-in for the model's Responses API on loopback, just as much of it as Codex CLI needs for a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from .loopback_http import LoopbackServer

ANSWER = "Understood."
NO_TOKENS = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}

Request = dict[str, Any]


def use_tool(name: str, arguments: Mapping[str, object], *, namespace: str | None = None) -> dict[str, Any]:
    """The output item with which the model calls a tool; those of an MCP server are in a namespace of its own."""
    call = {"type": "function_call", "name": name, "arguments": json.dumps(dict(arguments)), "call_id": f"call-{name}"}
    return {**call, **({"namespace": namespace} if namespace else {})}


class StandInResponses(LoopbackServer):
    """`with StandInResponses() as model:` serves on `model.url`; `model.requests` is what it was sent.

    `model.rule` may choose the output item for a request; without one, or where it gives None, the answer is ANSWER.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.rule: Callable[[Request], dict[str, Any] | None] = lambda request: None
        super().__init__(_handler(self))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def texts_of(self, role: str, after: int = 0) -> list[str]:
        """What the requests from number `after` on hold under a role, one text per part."""
        inputs = [item for request in self.requests[after:] for item in request.get("input", ())]
        items = [item for item in inputs if item.get("role") == role]
        return [str(part.get("text", "")) for item in items for part in item.get("content", ())]

    def tool_results(self) -> list[str]:
        """What tools gave back to the model, as JSON, oldest first."""
        items = [item for request in self.requests for item in request.get("input", ())]
        found = {item["call_id"]: json.dumps(item) for item in items if item.get("type") == "function_call_output"}
        return list(found.values())


def ends_with_tool_result(request: Request) -> bool:
    """Whether a tool has just answered."""
    return bool(request["input"][-1].get("type") == "function_call_output")


SAID = {"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": ANSWER}]}


def _events(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": NO_TOKENS}},
    ]


def _handler(model: StandInResponses) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silent: the requests are kept instead."""

        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            model.requests.append(request)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for event in _events(model.rule(request) or SAID):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    return Handler
