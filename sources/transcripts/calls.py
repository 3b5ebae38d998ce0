"""Tool calls, whichever host they come from: what a call acts on, and how it reads as short text."""

from __future__ import annotations

from typing import Any

from ...vault.turn import ToolEvent
from .lines import clean, one_line, shorten

TOOL_TEXT_CHARS = 1600
"""Of a command, and of what a tool put out."""
REMEMBERED_CALLS = 2000
"""Calls whose outcome has not come yet."""

_COMMAND_KEYS = ("command", "cmd")
_FILE_KEYS = ("file_path", "path", "notebook_path")
_TARGET_KEYS = (*_COMMAND_KEYS, *_FILE_KEYS, "pattern", "query", "url", "skill", "description")

_event = tuple.__new__
"""Makes a `ToolEvent` in half the time."""


def tool_call(use_id: str, name: str, arguments: dict[str, Any]) -> ToolEvent:
    """A call, and what it acts on out of its arguments."""
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
    """A call as short text: a command in full, an edit as what goes and what comes."""
    if event.command:
        return event.command
    old, new = arguments.get("old_string"), arguments.get("new_string", arguments.get("content"))
    if isinstance(new, str):
        removed = f"- {shorten(clean(old), 300)}\n" if isinstance(old, str) and old else ""
        return f"{event.target}\n{removed}+ {shorten(clean(new), 600)}"
    return event.target
