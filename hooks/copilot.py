"""Copilot CLI: capture only. It ignores what hooks print, and writes its payload in either of two spellings."""

from __future__ import annotations

from ..vault.marker import is_session_id
from ..vault.transcript_path import resolve_within
from .claude import question
from .payload import HookCall, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST = "copilot"
ANSWERS = False
SILENCE = ""
EVENTS = {
    "sessionStart": "SessionStart",
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "sessionEnd": "SessionEnd",
}

__all__ = ["ANSWERS", "EVENTS", "HOST", "SILENCE", "present", "question", "read_call", "transcript_of"]


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """`payload` as a call."""
    name = event or text_of(payload, "hook_event_name")
    call = HookCall(EVENTS.get(name, name), HOST)
    session = text_of(payload, "session_id") or text_of(payload, "sessionId")
    call.session = session if is_session_id(session) else ""
    call.transcript = text_of(payload, "transcript_path") or text_of(payload, "transcriptPath")
    call.cwd = text_of(payload, "cwd")
    call.prompt = text_of(payload, "prompt")
    source = text_of(payload, "source")
    call.source = "startup" if source == "new" else source
    return call


def transcript_of(call: HookCall, roots: list[str]) -> str | None:
    """Absolute path of the session's events; None when it would lie outside the host's own folder."""
    path = call.transcript
    if not path and call.session and roots[2:]:
        path = f"{roots[2]}/{call.session}/events.jsonl"
    return resolve_within(path, roots[2:3])


def present(event: str, text: str) -> str:
    """Nothing: nobody reads it."""
    del event, text
    return ""
