"""Claude Code: its payload in our words, and where its transcripts may lie.

The seam for other hosts: a module per host with the same names, chosen by `client.adapter_of`.
"""

from __future__ import annotations

import os

from ..vault.marker import is_session_id
from ..vault.transcript_path import resolve_within
from .payload import HookCall, parse_object, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST = "claude"
ANSWERS = True
"""Whether the host gives the model what a hook prints."""
SILENCE = ""
"""What a hook prints when it has nothing to say."""
EVENTS: dict[str, str] = {}
"""Events that the host calls otherwise than Claude Code does."""
MOST_SETTINGS_BYTES = 1_000_000
# A prompt that begins like this was written by the host under the user's name, not by the user.
HOST_WRITTEN = ("<task-notification>", "<local-command-", "<command-", "<bash-", "<system-reminder>", "<ide_")


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """`payload` as a call; fields that are missing or malformed are ''."""
    call = HookCall(event or text_of(payload, "hook_event_name") or text_of(payload, "hookEventName"), HOST)
    session = text_of(payload, "session_id")
    call.session = session if is_session_id(session) else ""
    call.transcript = text_of(payload, "transcript_path")
    call.cwd = text_of(payload, "cwd")
    call.prompt = text_of(payload, "prompt")
    call.source = text_of(payload, "source")
    call.notification = text_of(payload, "notification_type")
    call.agent = text_of(payload, "agent_id")
    call.moment = text_of(payload, "prompt_id")
    return call


def question(prompt: str) -> str:
    """The user's own words in a prompt, '' when it holds none: a slash command's name is not a question."""
    text = prompt.strip()
    if text.startswith(HOST_WRITTEN):
        return ""
    if text.startswith("/") and "/" not in text[1:].split(" ", 1)[0]:
        return text.partition(" ")[2].strip()
    return text


def transcript_of(call: HookCall, roots: list[str]) -> str | None:
    """Absolute path of the session's transcript; None when it would lie outside every root.

    The file need not exist yet: the host writes it asynchronously. Without a path in the payload the
    host's own naming is used (every character of the folder that is not alphanumeric becomes `-`).
    """
    path = call.transcript
    if not path:
        if not roots or not call.session:
            return None
        folder = "".join(c if c.isascii() and c.isalnum() else "-" for c in call.cwd)
        path = f"{roots[0]}/{folder}/{call.session}.jsonl"
    return resolve_within(path, roots)


def loads_itself(folder: str, transcript: str, config_dir: str) -> bool:
    """Whether the host itself puts the index in `folder` before the model: its own notes may be kept there.

    They lie beside its transcripts, maybe behind a link, or where its setting `autoMemoryDirectory` says.
    """
    if os.environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY") not in (None, "", "0", "false"):
        return False
    settings: dict[str, Any] = {}
    try:
        with open(f"{config_dir}/settings.json", "rb") as file:
            raw = file.read(MOST_SETTINGS_BYTES)
        if b'"autoMemory' in raw:
            settings = parse_object(raw) or {}
    except OSError:
        pass
    if settings.get("autoMemoryEnabled") is False:
        return False
    places = [f"{os.path.dirname(transcript)}/memory"] if transcript.startswith("/") else []
    named = text_of(settings, "autoMemoryDirectory")
    if named:
        places.append(os.path.expanduser(named))
    try:
        return any(os.path.samefile(place, folder) for place in places if os.path.isdir(place))
    except (OSError, ValueError):
        return False


def present(event: str, text: str) -> str:
    """Plain text on standard output becomes context."""
    del event
    return text
