"""The adapter of OpenCode, and the plugin in JavaScript by which it runs the hook.

The plugin sends Claude Code's payload, and reads its answers; only tools and their arguments have OpenCode's names."""

from __future__ import annotations

import os

from ..runtime.layout import resolve_within
from .claude import ANSWERS as ANSWERS
from .claude import EMPTY_ANSWER as EMPTY_ANSWER
from .claude import EVENTS as EVENTS
from .claude import extract_question as extract_question
from .claude import format_answer as format_answer
from .claude import read_call as _read_call
from .payload import quote, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .payload import HookCall

HOST = "opencode"
TOOLS = {"bash": "Bash", "edit": "Edit", "write": "Write", "apply_patch": "Edit"}
ARGUMENTS = {"filePath": "file_path", "oldString": "old_string", "newString": "new_string", "patchText": "new_string"}
PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
PLUGIN_FILE = "plugin/memoryvault.js"
_OURS = b"// MemoryVault's plugin for OpenCode."
_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opencode.js")
_NO_ACTIONS, _ACTIONS = b"const ACTIONS = false", b"const ACTIONS = true"
LOCK = b'{"lockfileVersion":3,"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}\n'
"""With an empty node_modules/ beside it OpenCode finds what it looks for. Where any plugin is, each start waits until
it has fetched its own package, 77 s without a network; ours does not need it."""


def read_call(event: str, payload: dict[str, Any]) -> HookCall:
    """Read `payload` as a call, and give its tool and the tool's arguments the names that Claude Code has for them."""
    call = _read_call(event, payload)
    call.host = HOST
    payload["tool_name"] = TOOLS.get(text_of(payload, "tool_name"), text_of(payload, "tool_name"))
    arguments = payload.get("tool_input")
    if isinstance(arguments, dict):
        named = {ARGUMENTS.get(name, name): value for name, value in arguments.items()}
        patch = text_of(arguments, "patchText").split("\n")
        named["file_paths"] = [line.partition(": ")[2].strip() for line in patch if line.startswith(PATCHED)]
        payload["tool_input"] = named
    return call


def resolve_transcript(call: HookCall, folders: dict[str, str]) -> str | None:
    """Return the path that names the session in OpenCode's database; None if its folder is not known."""
    return resolve_within(f"{folders[HOST]}/opencode.db#{call.session}", [folders[HOST]])


def install_plugin(folder: str, launcher: str, *, actions: bool | None = None) -> bool:
    """Write the plugin into OpenCode's folder; return whether anything changed.

    `actions`: whether tool calls run the hook; None keeps the present choice. Raises OSError, and FileExistsError if
    the file of that name is not ours.
    """
    from pathlib import Path

    from ..runtime.atomic_file import replace_file

    path = os.path.join(folder, PLUGIN_FILE)
    before = _read(path)
    if before is not None and not before.startswith(_OURS):
        raise FileExistsError(f"{path} is another's: move it away, then run this again")
    text = plugin_text(launcher, actions=has_actions(folder) if actions is None else actions)
    if before != text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(Path(path), text)
    return _spare_the_wait(folder) or before != text


def remove_plugin(folder: str) -> bool:
    """Remove all that `install_plugin` wrote and nobody changed; return whether there was anything. Raises OSError."""
    path = os.path.join(folder, PLUGIN_FILE)
    lock, modules = os.path.join(folder, "package-lock.json"), os.path.join(folder, "node_modules")
    is_there = (_read(path) or b"").startswith(_OURS)
    has_modules = os.path.lexists(modules)
    is_spared = _read(lock) == LOCK and not (has_modules and (not os.path.isdir(modules) or os.listdir(modules)))
    if is_there:
        os.unlink(path)
    if is_spared:
        os.unlink(lock)
        if has_modules:
            os.rmdir(modules)
    for emptied in (os.path.dirname(path), folder) if is_there or is_spared else ():
        if os.path.isdir(emptied) and not os.listdir(emptied):
            os.rmdir(emptied)
    return is_there or is_spared


def is_current(folder: str, launcher: str) -> bool:
    """Whether the plugin is there, exactly as this version writes it."""
    return _read(os.path.join(folder, PLUGIN_FILE)) == plugin_text(launcher, actions=has_actions(folder))


def has_actions(folder: str) -> bool:
    """Whether the plugin runs the hook at tool calls."""
    return _ACTIONS in (_read(os.path.join(folder, PLUGIN_FILE)) or b"")


def plugin_text(launcher: str, *, actions: bool) -> bytes:
    text = (_read(_SOURCE) or b"").replace(b'"@LAUNCHER@"', quote(launcher).encode())
    return text.replace(_NO_ACTIONS, _ACTIONS) if actions else text


def _spare_the_wait(folder: str) -> bool:
    """Have OpenCode find what it would fetch, unless it fetched it already, or something else there may need it."""
    from pathlib import Path

    from ..runtime.atomic_file import replace_file

    lock = os.path.join(folder, "package-lock.json")
    is_begun = _read(lock) == LOCK  # By a run that was killed.
    theirs = ("node_modules", "package.json", "tool", "tools", "plugins", *(() if is_begun else ("package-lock.json",)))
    if any(os.path.lexists(os.path.join(folder, name)) for name in theirs):
        return False
    if len(os.listdir(os.path.join(folder, os.path.dirname(PLUGIN_FILE)))) > 1:
        return False
    replace_file(Path(lock), LOCK)
    os.mkdir(os.path.join(folder, "node_modules"))
    return True


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
