"""A stand-in for the model's Responses API on loopback, just as much of it as Codex CLI needs for a turn."""

import json
from collections.abc import Mapping

from .loopback_http import Part, Request, StandInService

ANSWER = "Understood."
NO_TOKENS = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
SAID = {"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": ANSWER}]}


def use_tool(name: str, arguments: Mapping[str, object], *, namespace: str | None = None) -> Part:
    """The output item with which the model calls a tool; those of an MCP server are in a namespace of its own."""
    call = {"type": "function_call", "name": name, "arguments": json.dumps(dict(arguments)), "call_id": f"call-{name}"}
    return {**call, **({"namespace": namespace} if namespace else {})}


class StandInResponses(StandInService):
    """`with StandInResponses() as model:` serves on `model.url`."""

    root = "/v1"

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

    def answer(self, path: str, request: Request) -> tuple[str, str]:
        """Return the stream of one answer."""
        self.requests.append(request)
        events: list[Part] = [
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "item": self.rule(request) or SAID},
            {"type": "response.completed", "response": {"id": "r1", "usage": NO_TOKENS}},
        ]
        stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return "text/event-stream", stream


def ends_with_tool_result(request: Request) -> bool:
    """Whether a tool has just answered."""
    return bool(request["input"][-1].get("type") == "function_call_output")
