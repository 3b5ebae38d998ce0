"""Codex CLI: Claude Code's payload with small differences; its answer must be JSON without a key too many."""

from __future__ import annotations

from ..vault.transcript_path import resolve_within
from .claude import question
from .claude import read_call as _read_call
from .payload import quote, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .payload import HookCall

HOST = "codex"
ANSWERS = True
SILENCE = ""
EVENTS: dict[str, str] = {}

__all__ = ["ANSWERS", "EVENTS", "HOST", "SILENCE", "present", "question", "read_call", "transcript_of"]


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """`payload` as a call; a turn's id is what tells its events apart."""
    call = _read_call(event, payload)
    call.host = HOST
    call.moment = text_of(payload, "turn_id")
    return call


def transcript_of(call: HookCall, roots: list[str]) -> str | None:
    """Absolute path; '' when the host does not say it yet (its name can't be derived); None when it is refused."""
    return resolve_within(call.transcript, roots[1:2]) if call.transcript else ""


def present(event: str, text: str) -> str:
    """What the host takes for context."""
    if not text:
        return ""
    return f'{{"hookSpecificOutput":{{"hookEventName":{quote(event)},"additionalContext":{quote(text)}}}}}\n'
