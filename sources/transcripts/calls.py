"""Tool calls of any host: what a call acts on, and its short text."""

from __future__ import annotations

from typing import Any

from ...vault.turn import ToolEvent
from .lines import clean, one_line, shorten

TOOL_TEXT_CHARS = 1600
"""Longest text of a command, and of a tool's output."""
REMEMBERED_CALLS = 2000
"""Most calls that wait for their result; the oldest is forgotten."""

_COMMAND_KEYS = ("command", "cmd")
_FILE_KEYS = ("file_path", "path", "notebook_path")
_TARGET_KEYS = (*_COMMAND_KEYS, *_FILE_KEYS, "pattern", "query", "url", "skill", "description")

_event = tuple.__new__
"""Makes a `ToolEvent` in half the time."""


def tool_call(use_id: str, name: str, arguments: dict[str, Any]) -> ToolEvent:
    """Describe a call, with the target that its arguments name."""
    command, file_path = _first_text(arguments, _COMMAND_KEYS), _first_text(arguments, _FILE_KEYS)
    target = ""
    for key in _TARGET_KEYS:
        if key in arguments and (target := one_line(arguments[key])):
            break
    ran = shorten(clean(command), TOOL_TEXT_CHARS) if command else None
    return _event(ToolEvent, (name, use_id or None, ran, clean(file_path) if file_path else None, False, False, target))


def _first_text(arguments: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        if key in arguments and isinstance(arguments[key], str):
            text: str = arguments[key]
            return text
    return None


def call_text(event: ToolEvent, arguments: dict[str, Any]) -> str:
    """Render a call as short text: a command in full, an edit as the lines it removes and adds."""
    if event.command:
        return event.command
    old, new = arguments.get("old_string"), arguments.get("new_string", arguments.get("content"))
    if isinstance(new, str):
        removed = f"- {shorten(clean(old), 300)}\n" if isinstance(old, str) and old else ""
        return f"{event.target}\n{removed}+ {shorten(clean(new), 600)}"
    return event.target
