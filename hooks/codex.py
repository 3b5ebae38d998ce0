"""The adapter of Codex CLI: Claude Code's payload with small differences; an answer is JSON without additional keys."""

from __future__ import annotations

from ..runtime.layout import resolve_within
from .claude import extract_question as extract_question
from .claude import read_call as _read_call
from .payload import format_context, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .payload import HookCall

HOST = "codex"
ANSWERS = True
EMPTY_ANSWER = ""
EVENTS: dict[str, str] = {}


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """Read `payload` as a call; the id of its turn distinguishes its events."""
    call = _read_call(event, payload)
    call.host = HOST
    call.prompt_id = text_of(payload, "turn_id")
    return call


def resolve_transcript(call: HookCall, folders: dict[str, str]) -> str | None:
    """Return the real path of the transcript; '' when the payload has none yet; None when it is refused."""
    return resolve_within(call.transcript, [folders[HOST]]) if call.transcript else ""


def format_answer(event: str, text: str) -> str:
    """Format `text` as the JSON object from which the host takes context."""
    return format_context(event, text) if text else ""
