"""Describe a tool call of any host: what it acts on, and a short text of it."""

from __future__ import annotations

from typing import Any

from ...vault.turn import ToolEvent
from .lines import as_text, clean, one_line, shorten

TOOL_TEXT_CHARS = 1600
"""Longest text of a command, and of a tool's output."""
REMEMBERED_CALLS = 2000
"""Most calls that wait for their result; after that the oldest is forgotten."""

_COMMAND_KEYS = ("command", "cmd")
_FILE_KEYS = ("file_path", "path", "notebook_path")
_TARGET_KEYS = (*_COMMAND_KEYS, *_FILE_KEYS, "pattern", "query", "url", "skill", "description")


def tool_call(use_id: str, name: str, arguments: dict[str, Any]) -> ToolEvent:
    """Describe a call by its id, the tool's name and its arguments."""
    command, file_path = _first_text(arguments, _COMMAND_KEYS), _first_text(arguments, _FILE_KEYS)
    target = next(filter(None, (one_line(arguments.get(key)) for key in _TARGET_KEYS)), "")
    ran = shorten(clean(command), TOOL_TEXT_CHARS) if command else None
    return ToolEvent(name, use_id or None, ran, clean(file_path) if file_path else None, target=target)


def _first_text(arguments: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((as_text(arguments[key]) for key in keys if isinstance(arguments.get(key), str)), "")


def call_text(event: ToolEvent, arguments: dict[str, Any]) -> str:
    """Render a call as short text: a command in full, an edit as the lines it removes and adds."""
    if event.command:
        return event.command
    old, new = arguments.get("old_string"), arguments.get("new_string", arguments.get("content"))
    if isinstance(new, str):
        removed = f"- {shorten(clean(old), 300)}\n" if isinstance(old, str) and old else ""
        return f"{event.target}\n{removed}+ {shorten(clean(new), 600)}"
    return event.target
