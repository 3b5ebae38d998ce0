"""A stand-in for a model's Chat Completions API on loopback, just as much of it as OpenCode needs for a turn."""

import json
import uuid
from collections.abc import Mapping

from .loopback_http import Part, Request, StandInService

ANSWER = "Understood."
TITLE = "A title"
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def use_tool(name: str, arguments: Mapping[str, object]) -> Part:
    """The message with which the model calls a tool."""
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    call = {"index": 0, "id": f"call-{uuid.uuid4().hex}", "type": "function", "function": function}
    return {"content": None, "tool_calls": [call]}


class StandInChat(StandInService):
    """`with StandInChat() as model:` serves on `model.url`; `model.requests` is what it was sent, without titles."""

    root = "/v1"

    def texts_of(self, role: str, after: int = 0) -> list[str]:
        """What the requests from number `after` on hold under a role, one text per part."""
        found = []
        for message in (message for request in self.requests[after:] for message in request["messages"]):
            content = message["content"]
            if message["role"] == role and content:
                found += [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
        return found

    def answer(self, path: str, request: Request) -> tuple[str, str]:
        """Return the stream of one answer."""
        if "title generator" in json.dumps(request["messages"][0]):
            message: Part = {"content": TITLE}
        else:
            self.requests.append(request)
            message = self.rule(request) or {"content": ANSWER}
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choices = [
            {"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": reason},
        ]
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m1", "usage": USAGE}
        events = [json.dumps({**head, "choices": [choice]}) for choice in choices]
        return "text/event-stream", "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
