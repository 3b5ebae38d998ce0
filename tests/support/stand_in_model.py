"""A stand-in for the model's Messages API on loopback: scripted answers, every request kept.

It speaks just as much of the protocol as an agent client needs (streamed `message_start` to `message_stop`
events, text and `tool_use` blocks), so the real client can be driven with no account and no network. What
the client sends shows exactly what reached the model, injected context included.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .loopback_http import Part, Request, StandInService

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


Answer = Say | UseTool


@dataclass(frozen=True)
class ModelRequest:
    """One `POST /v1/messages` as the client sent it."""

    body: Request

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(str(tool.get("name", "")) for tool in self.body.get("tools") or ())

    @property
    def blocks(self) -> tuple[Part, ...]:
        """Every content block of the conversation, oldest first; plain strings become text blocks."""
        return tuple(block for message in self.body.get("messages", ()) for block in _blocks(message["content"]))

    @property
    def newest(self) -> tuple[Part, ...]:
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


class StandInModel(StandInService):
    """`with StandInModel() as model:` serves on `model.url`."""

    requests: list[ModelRequest]
    rule: Callable[[ModelRequest], Answer | None]

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

    def answer(self, path: str, request: Request) -> tuple[str, str]:
        """Return the stream of one answer."""
        if "count_tokens" in path:
            return "application/json", json.dumps({"input_tokens": 10})
        asked = ModelRequest(request)
        self.requests.append(asked)
        events = _events(self.rule(asked) or Say("Understood."), str(request.get("model")))
        return "text/event-stream", "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
        )


def _blocks(content: object) -> Iterator[Part]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield block


def _text_of(block: Part) -> str:
    if block.get("type") == "tool_result":
        return "\n".join(_text_of(inner) for inner in _blocks(block.get("content")))
    return str(block.get("text", ""))


def _events(answer: Answer, model: str) -> Iterator[Part]:
    """The stream of one message, in the order that the protocol documents."""
    number = f"{time.monotonic_ns():024d}"
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 10, "output_tokens": 10}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    parts: list[tuple[Part, Part]] = []
    if answer.text:
        parts.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": answer.text}))
    if isinstance(answer, UseTool):
        start = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.name, "input": {}}
        parts.append((start, {"type": "input_json_delta", "partial_json": json.dumps(answer.input)}))
    for index, (start, delta) in enumerate(parts):
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if isinstance(answer, UseTool) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
