"""The adapter of Antigravity. Experimental: built from its documented payloads, never run against the program itself.

Antigravity has no event for a prompt. PreInvocation comes before each call of the model: the first one of a turn counts
as the prompt, whose text is only in the transcript, and the first one of a session as its start. Where that one ran out
of time, a later one is given the opening.
"""

from __future__ import annotations

import os

from ..runtime.layout import resolve_within
from ..vault.marker import is_session_id
from .claude import extract_question as extract_question
from .payload import HookCall, parse_object, quote, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST = "antigravity"
ANSWERS = True
EMPTY_ANSWER = "{}\n"
"""The host expects a JSON object from every call."""
EVENTS = {"PreInvocation": "UserPromptSubmit"}
TAIL_BYTES = 64 * 1024
_OPEN, _CLOSE = "<USER_REQUEST>", "</USER_REQUEST>"


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """Read `payload` as a call. Its event is '' for a model call within a turn and for a Stop while work goes on."""
    name = event or text_of(payload, "hookEventName")
    call = HookCall(name, HOST)
    session = text_of(payload, "conversationId")
    call.session = session if is_session_id(session) else ""
    call.transcript = os.path.expanduser(text_of(payload, "transcriptPath"))
    folders = payload.get("workspacePaths")
    if isinstance(folders, list) and folders and isinstance(folders[0], str):
        call.cwd = folders[0]
    if name == "PreInvocation":
        number, steps = payload.get("invocationNum"), payload.get("initialNumSteps")
        is_start = isinstance(steps, int) and steps <= 1
        call.event = "" if number != 0 else "SessionStart" if is_start else "UserPromptSubmit"
        call.source = "startup"
        call.prompt_id = f"{steps}.{number}"
    elif name == "Stop" and payload.get("fullyIdle") is False:
        call.event = ""
    return call


def read_prompt(transcript: str) -> str:
    """Return the last prompt that the user typed; '' when there is none in the last TAIL_BYTES of the transcript."""
    try:
        with open(transcript, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(end - TAIL_BYTES, 0))
            lines = file.read().split(b"\n")
    except OSError:
        return ""
    for line in reversed(lines):
        record = parse_object(line) if b'"USER_INPUT"' in line else None
        if record is not None and record.get("type") == "USER_INPUT":
            content = text_of(record, "content")
            begin, end = content.find(_OPEN), content.rfind(_CLOSE)
            return content[begin + len(_OPEN) : end].strip() if 0 <= begin < end else content.strip()
    return ""


def resolve_transcript(call: HookCall, folders: dict[str, str]) -> str | None:
    """Return the real path of the transcript; '' when the payload has none; None when it is outside the host's own
    folder."""
    return resolve_within(call.transcript, [folders[HOST]]) if call.transcript else ""


def format_answer(event: str, text: str) -> str:
    """Format `text` as a message that the model sees once and the user does not."""
    del event
    return f'{{"injectSteps":[{{"ephemeralMessage":{quote(text)}}}]}}\n' if text else ""
