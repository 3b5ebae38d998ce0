"""A stand-in for Gemini's API on loopback, just as much of it as Gemini CLI needs for a turn."""

import json
from collections.abc import Iterator, Mapping

from .loopback_http import Part, Request, StandInService

ANSWER = "Understood."
_ROUTED = json.dumps({"reasoning": "short", "model_choice": "flash"})
"""What the client's router of models wants, in requests that are not streamed."""


def use_tool(name: str, arguments: Mapping[str, object]) -> Part:
    """The part with which the model calls a tool."""
    return {"functionCall": {"name": name, "args": dict(arguments)}}


class StandInGemini(StandInService):
    """`with StandInGemini() as model:` serves on `model.url`; `model.requests` is what each turn sent."""

    def answer(self, path: str, request: Request) -> tuple[str, str]:
        """Return one whole answer; to a turn as the only event of a stream."""
        is_turn = ":streamGenerateContent" in path
        part: Part = {"text": _ROUTED}
        if is_turn:
            self.requests.append(request)
            part = self.rule(request) or {"text": ANSWER}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        answer = json.dumps({"candidates": [candidate], "usageMetadata": usage})
        return ("text/event-stream", f"data: {answer}\r\n\r\n") if is_turn else ("application/json", answer)


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
