"""Read what a host sends on standard input, as JSON and as a `HookCall`, without the `json` and `re` modules.

Importing `json` takes about half as long as starting a bare interpreter; its C scanner takes a tenth of that.
"""

from __future__ import annotations

import os

from ..runtime.interpreter import json_scanner
from ..runtime.interpreter import quote as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STDIN_LIMIT_BYTES = 32 * 1024 * 1024


class HookCall:
    """One invocation of a hook, in terms common to all hosts; a text that is absent is ''."""

    def __init__(self, event: str, host: str) -> None:
        self.event = event
        """Claude Code's name of the event, whatever the host calls it."""
        self.host = host
        self.session = ""
        """Session id, validated: safe as a file name and in JSON."""
        self.transcript = ""
        self.cwd = ""
        self.prompt = ""
        self.source = ""
        """SessionStart: startup, resume, clear, compact, fork."""
        self.notification = ""
        self.agent = ""
        """Id of the sub-agent; '' for the main one."""
        self.prompt_id = ""
        """The host's id of this prompt, if it sends one: the same for two installations of a hook."""


def read_stdin() -> bytes:
    """Read all of standard input, at most about STDIN_LIMIT_BYTES; b'' for a terminal or a closed descriptor."""
    try:
        if os.isatty(0):
            return b""
        with open(0, "rb", closefd=False) as file:
            return file.read(STDIN_LIMIT_BYTES) or b""
    except OSError:
        return b""


def parse_object(raw: bytes) -> dict[str, Any] | None:
    """Parse the JSON object in `raw`; None for anything else."""
    text = raw.decode("utf-8", "replace").lstrip("\ufeff").strip()
    if not text.startswith("{"):
        return None
    try:
        value, end = json_scanner()(text, 0)
    except Exception:  # noqa: BLE001  Bad JSON has several names (StopIteration, RecursionError, JSONDecodeError).
        return None
    return value if isinstance(value, dict) and end == len(text) else None


def text_of(payload: dict[str, Any], key: str) -> str:
    """Return the string under `key`; '' when it is absent or of another type."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def format_context(event: str, text: str) -> str:
    """Format the JSON by which Claude Code and Codex put `text` before the model."""
    return f'{{"hookSpecificOutput":{{"hookEventName":{quote(event)},"additionalContext":{quote(text)}}}}}\n'
