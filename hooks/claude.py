"""The adapter of Claude Code: reads its payload, finds its transcripts, formats answers for it.

Each host has a module with the same names; `client.adapter_of` chooses it.
"""

from __future__ import annotations

import os

from ..runtime.layout import resolve_within
from ..vault.marker import is_session_id
from .payload import HookCall, parse_object, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST = "claude"
ANSWERS = True
"""Whether the host shows the model what a hook prints."""
EMPTY_ANSWER = ""
"""What a hook prints when there is nothing for the model."""
EVENTS: dict[str, str] = {}
"""Names of events that differ from Claude Code's, mapped to its names."""
MAX_SETTINGS_BYTES = 1_000_000


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """Read `payload` as a call; fields that are missing or malformed become ''."""
    call = HookCall(event or text_of(payload, "hook_event_name") or text_of(payload, "hookEventName"), HOST)
    session = text_of(payload, "session_id")
    call.session = session if is_session_id(session) else ""
    call.transcript = text_of(payload, "transcript_path")
    call.cwd = text_of(payload, "cwd")
    call.prompt = text_of(payload, "prompt")
    call.source = text_of(payload, "source")
    call.notification = text_of(payload, "notification_type")
    call.agent = text_of(payload, "agent_id")
    call.prompt_id = text_of(payload, "prompt_id")
    return call


def extract_question(prompt: str) -> str:
    """Return the user's own words in a prompt, without the name of a slash command; '' when there are none."""
    # Of all events only a prompt needs it.
    from ..vault.typed_text import slash_command, typed_text, words_to_agent

    text = typed_text(prompt)
    command = slash_command(text)
    if command is not None:
        return command[1]
    return words_to_agent(text)


def resolve_transcript(call: HookCall, folders: dict[str, str]) -> str | None:
    """Return the real path of the session's transcript; None when it is in none of `folders`, where hosts keep
    sessions.

    The file need not exist yet: the host writes it asynchronously. If the payload has no path, it is made as the host
    names its files: every character of the working directory that is not alphanumeric becomes `-`.
    """
    path = call.transcript
    if not path:
        if not call.session:
            return None
        folder = "".join(c if c.isascii() and c.isalnum() else "-" for c in call.cwd)
        path = f"{folders['claude']}/{folder}/{call.session}.jsonl"
    return resolve_within(path, [*folders.values()])


def host_loads_notes(folder: str, transcript: str, config_dir: str) -> bool:
    """Whether the host itself shows the model the index of notes in `folder`.

    It does if its own notes are kept there: their folder is in that of its transcripts, perhaps as a link, or named by
    its setting `autoMemoryDirectory`.
    """
    if os.environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY") not in (None, "", "0", "false"):
        return False
    settings: dict[str, Any] = {}
    try:
        with open(f"{config_dir}/settings.json", "rb") as file:
            raw = file.read(MAX_SETTINGS_BYTES)
        if b'"autoMemory' in raw:
            settings = parse_object(raw) or {}
    except OSError:
        pass
    if settings.get("autoMemoryEnabled") is False:
        return False
    places = [f"{os.path.dirname(transcript)}/memory"] if transcript.startswith("/") else []
    configured = text_of(settings, "autoMemoryDirectory")
    if configured:
        places.append(os.path.expanduser(configured))
    try:
        return any(os.path.samefile(place, folder) for place in places if os.path.isdir(place))
    except (OSError, ValueError):
        return False


def format_answer(event: str, text: str) -> str:
    """Return `text` itself: plain text on standard output becomes context."""
    del event
    return text
