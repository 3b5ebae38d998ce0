"""The stand-in speaks the streamed protocol that a client relies on."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from .stand_in_model import ModelRequest, StandInModel, UseTool


def post(url: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(
        f"{url}/v1/messages?beta=true", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=5) as response:
        text: str = response.read().decode()
    return text


def conversation(text: str) -> dict[str, Any]:
    """As the client sends it: what a hook printed follows the user's words in a message of its own."""
    return {
        "model": "any",
        "stream": True,
        "messages": [
            {"role": "user", "content": text},
            {"role": "system", "content": "UserPromptSubmit hook success: remembered"},
        ],
    }


def test_a_streamed_answer_has_the_documented_events_in_order() -> None:
    with StandInModel(default="Fine.") as model:
        lines = post(model.url, conversation("hello")).splitlines()
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert events == ["message_start", *block, "message_delta", "message_stop"]
    assert any("Fine." in line for line in lines)


def test_a_scripted_tool_call_carries_its_input_and_stops_for_the_tool() -> None:
    with StandInModel() as model:
        model.answer(lambda request: UseTool("Bash", {"command": "ls"}) if request.newest_text == "list" else None)
        answer = json.loads(post(model.url, {**conversation("list"), "stream": False}))
        assert json.loads(post(model.url, {**conversation("other"), "stream": False}))["stop_reason"] == "end_turn"
    assert answer["stop_reason"] == "tool_use"
    assert answer["content"][-1]["input"] == {"command": "ls"}


def test_every_request_is_kept_with_what_a_hook_added() -> None:
    with StandInModel() as model:
        post(model.url, conversation("hello"))
        (request,) = model.requests
    assert isinstance(request, ModelRequest)
    assert request.newest_text == "hello"
    assert "remembered" in request.conversation_text
