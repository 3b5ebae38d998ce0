"""The adapter of Copilot CLI, which ignores what hooks print, and spells the keys of its payload in one of two ways."""

from __future__ import annotations

from ..runtime.layout import resolve_within
from ..vault.marker import is_session_id
from .claude import extract_question as extract_question
from .payload import HookCall, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST = "copilot"
ANSWERS = False
EMPTY_ANSWER = ""
EVENTS = {
    "sessionStart": "SessionStart",
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "sessionEnd": "SessionEnd",
}


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """Read `payload` as a call; fields that are missing or malformed become ''."""
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


def resolve_transcript(call: HookCall, folders: dict[str, str]) -> str | None:
    """Return the real path of the session's events; None when it is outside the host's own folder."""
    path = call.transcript
    if not path and call.session:
        path = f"{folders[HOST]}/{call.session}/events.jsonl"
    return resolve_within(path, [folders[HOST]])


def format_answer(event: str, text: str) -> str:
    """Return '', since the host ignores what hooks print."""
    del event, text
    return ""
