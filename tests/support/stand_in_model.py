"""A stand-in for the model's Messages API on loopback: scripted answers, every request kept.

It speaks just as much of the protocol as an agent client needs (streamed `message_start` to `message_stop`
events, text and `tool_use` blocks), so the real client can be driven with no account and no network. What
the client sends shows exactly what reached the model, injected context included.
"""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .loopback_http import LoopbackServer, QuietHandler

POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Say:
    """Answer with text and end the turn."""

    text: str


@dataclass(frozen=True)
class UseTool:
    """Answer with one `tool_use` block, so that the client runs (or asks to run) the tool."""

    name: str
    input: Mapping[str, object]
    text: str = ""


@dataclass(frozen=True)
class Hang:
    """Start to answer, then keep the stream open until the client or the stand-in goes away."""

    text: str = "Let me think about this."


Answer = Say | UseTool | Hang


@dataclass(frozen=True)
class ModelRequest:
    """One `POST /v1/messages` as the client sent it."""

    body: Mapping[str, Any]

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(str(tool.get("name", "")) for tool in self.body.get("tools") or ())

    @property
    def blocks(self) -> tuple[Mapping[str, Any], ...]:
        """Every content block of the conversation, oldest first; plain strings become text blocks."""
        return tuple(block for message in self.body.get("messages", ()) for block in _blocks(message["content"]))

    @property
    def newest(self) -> tuple[Mapping[str, Any], ...]:
        """The blocks of the last user message. Hooks' context may follow it in a message of its own."""
        for message in reversed(self.body.get("messages") or ()):
            if message["role"] == "user":
                return tuple(_blocks(message["content"]))
        return ()

    @property
    def newest_text(self) -> str:
        return "\n".join(_text_of(block) for block in self.newest)

    @property
    def conversation_text(self) -> str:
        """Everything in `messages` as text, tool results included."""
        return "\n".join(self.texts)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(_text_of(block) for block in self.blocks)

    @property
    def system_text(self) -> str:
        return "\n".join(_text_of(block) for block in _blocks(self.body.get("system") or ()))

    @property
    def ends_with_tool_result(self) -> bool:
        return any(block.get("type") == "tool_result" for block in self.newest)


Rule = Callable[[ModelRequest], Answer | None]


class StandInModel(LoopbackServer):
    """`with StandInModel() as model:` serves on `model.url` until the block ends.

    Rules are asked in order; the first that returns an answer wins, and "Understood." answers the rest.
    """

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self._rules: list[Rule] = []
        self._closing = threading.Event()
        super().__init__(_handler(self))
        self._server.handle_error = _handle_error  # type: ignore[method-assign]  # quiet about clients that hang up

    def __exit__(self, *error: Any) -> None:
        self._closing.set()
        super().__exit__(*error)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, rule: Rule) -> None:
        """Put a rule before the earlier ones."""
        self._rules.insert(0, rule)

    def wait_for(
        self, wanted: Callable[[ModelRequest], bool], *, seconds: float = 60.0, after: int = 0
    ) -> ModelRequest:
        """The first request from number `after` on that `wanted` accepts; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for request in self.requests[after:]:
                if wanted(request):
                    return request
            time.sleep(POLL_SECONDS)
        raise TimeoutError(f"no such request among the {len(self.requests[after:])} of {seconds:g} s")

    def reply_to(self, request: ModelRequest) -> Answer:
        self.requests.append(request)
        answers = (rule(request) for rule in tuple(self._rules))
        return next((answer for answer in answers if answer is not None), Say("Understood."))

    def wait_until_closing(self, seconds: float) -> bool:
        return self._closing.wait(seconds)


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield block


def _text_of(block: Mapping[str, Any]) -> str:
    if block.get("type") == "tool_result":
        return "\n".join(_text_of(inner) for inner in _blocks(block.get("content")))
    return str(block.get("text", ""))


def _message(answer: Answer, number: int, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    if isinstance(answer, UseTool):
        content.append(
            {"type": "tool_use", "id": f"toolu_{number:024d}", "name": answer.name, "input": dict(answer.input)}
        )
    return {
        "id": f"msg_{number:024d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if isinstance(answer, UseTool) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def _events(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The stream of one message, in the order that the protocol documents."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        start: dict[str, Any]
        if block["type"] == "text":
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": 10},
    }
    yield {"type": "message_stop"}


def _handler(model: StandInModel) -> type[QuietHandler]:
    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._other()

        def do_GET(self) -> None:
            self._other()

        def do_POST(self) -> None:
            raw = self.body()
            path = urlsplit(self.path).path
            if path == "/v1/messages/count_tokens":
                self._json(200, {"input_tokens": 10})
            elif path == "/v1/messages":
                request = ModelRequest(json.loads(raw))
                answer = model.reply_to(request)
                message = _message(answer, time.monotonic_ns(), str(request.body.get("model")))
                if request.body.get("stream"):
                    self._stream(message, hang=isinstance(answer, Hang))
                else:
                    self._json(200, message)
            else:
                self._other()

        def _other(self) -> None:
            self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "not served here"}})

        def _json(self, status: int, value: Mapping[str, Any]) -> None:
            payload = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(payload)

        def _stream(self, message: Mapping[str, Any], *, hang: bool) -> None:
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for event in _events(message):
                    if hang and event["type"] == "content_block_stop":
                        self._hold_open()
                        return
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()
            except OSError:
                return  # the client was interrupted or killed: its end of the stream is gone

        def _hold_open(self) -> None:
            while not model.wait_until_closing(0.2):
                self.wfile.write(b'event: ping\ndata: {"type": "ping"}\n\n')
                self.wfile.flush()

    return Handler


def _handle_error(request: object, client_address: object) -> None:
    """A client that was killed leaves its connections open: that is no error of ours."""
    if not isinstance(sys.exception(), ConnectionError):
        traceback.print_exc()
