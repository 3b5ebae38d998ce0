"""A stand-in for a model's Chat Completions API on loopback, just as much of it as OpenCode needs for a turn."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

from .loopback_http import LoopbackServer

ANSWER = "Understood."
TITLE = "A title"
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}

Request = dict[str, Any]


def use_tool(name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    """The message with which the model calls a tool."""
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    call = {"index": 0, "id": f"call-{uuid.uuid4().hex}", "type": "function", "function": function}
    return {"content": None, "tool_calls": [call]}


class StandInChat(LoopbackServer):
    """`with StandInChat() as model:` serves on `model.url`; `model.requests` is what it was sent, without titles.

    `model.rule` may choose the message for a request; without one, or where it gives None, the answer is ANSWER.
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
        found = []
        for message in (message for request in self.requests[after:] for message in request["messages"]):
            content = message["content"]
            if message["role"] == role and content:
                found += [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
        return found


def _handler(model: StandInChat) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silent: the requests are kept instead."""

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            if "title generator" in json.dumps(request["messages"][0]):
                message: dict[str, Any] = {"content": TITLE}
            else:
                model.requests.append(request)
                message = model.rule(request) or {"content": ANSWER}
            reason = "tool_calls" if "tool_calls" in message else "stop"
            choices = [
                {"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None},
                {"index": 0, "delta": {}, "finish_reason": reason},
            ]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for choice in choices:
                chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m1", "usage": USAGE}
                self.wfile.write(f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    return Handler
