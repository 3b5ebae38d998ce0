"""The extension by which Gemini CLI runs our hooks: a folder with a manifest, the hooks, and the skill.

An extension rather than the host's settings: in a folder that the user has not trusted hooks of the settings do not
run. The hooks' own file is written as any host's (`wiring.py`), the skill as any host's (`skill.py`).
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from ..runtime.json_text import parse_json
from ..runtime.settings import Settings
from .install import Json, add_to_file, read_settings, remove_from_file

EXTENSION = "memoryvault"
VERSION = "1"
"""Of the extension; the host wants one."""
SERVER = "memory"
"""Name of the tools server in the manifest."""
SERVER_TIMEOUT_MS = 20_000
"""For its start and for each call. The host's own, ten minutes, would hold up a session's start for so long where the
server cannot answer."""
_ARGUMENTS = ["-I", "-m", "memoryvault", "service", "mcp"]


def extension_folder(settings: Settings) -> Path:
    """Return the folder of our extension, among the user's extensions of Gemini CLI."""
    return settings.hosts.gemini_home / "extensions" / EXTENSION


def install_manifest(settings: Settings) -> bool:
    """Write the manifest, or bring it up to date; return whether the file changed. Raises SettingsError."""
    return add_to_file(manifest_file(settings), _with_ours, _without_ours)[0]


def uninstall_manifest(settings: Settings) -> None:
    """Remove what `install_manifest` wrote. Raises SettingsError."""
    remove_from_file(manifest_file(settings), _with_ours, _without_ours)


def has_manifest(settings: Settings) -> bool:
    """Return whether our manifest is there: without one the host loads no hooks. Raises SettingsError."""
    return _is_ours(read_settings(manifest_file(settings)))


def is_current_manifest(settings: Settings) -> bool:
    """Return whether the manifest is as `install_manifest` writes it. Raises SettingsError."""
    document = read_settings(manifest_file(settings))
    return _with_ours(document) == document


def why_no_hook_runs(settings: Settings) -> str:
    """Return which of the host's settings keeps our hooks from running, and the remedy; '' if none does."""
    home = settings.hosts.gemini_home
    with suppress(OSError, ValueError, KeyError, TypeError):
        if parse_json((home / "settings.json").read_text("utf-8"))["hooksConfig"]["enabled"] is False:
            return "Gemini's setting hooksConfig.enabled is off: switch it on"
    with suppress(OSError, ValueError, KeyError, TypeError):
        switches = parse_json((home / "extensions" / "extension-enablement.json").read_text("utf-8"))
        if any(str(rule).startswith("!") for rule in switches[EXTENSION]["overrides"]):
            return f"Gemini's extension is disabled, at least in some folders: gemini extensions enable {EXTENSION}"
    return ""


def manifest_file(settings: Settings) -> Path:
    """Return the path of the manifest."""
    return extension_folder(settings) / "gemini-extension.json"


def _servers(document: Json) -> Json:
    servers = document.get("mcpServers")
    return servers if isinstance(servers, dict) else {}


def _is_ours(document: Json) -> bool:
    server = _servers(document).get(SERVER)
    return isinstance(server, dict) and server.get("args") == _ARGUMENTS


def _with_ours(document: Json) -> Json:
    server = {"command": sys.executable, "args": _ARGUMENTS, "timeout": SERVER_TIMEOUT_MS}
    return {"name": EXTENSION, "version": VERSION, **document, "mcpServers": {**_servers(document), SERVER: server}}


def _without_ours(document: Json) -> Json:
    if not _is_ours(document):
        return document
    servers = {name: server for name, server in _servers(document).items() if name != SERVER}
    rest = {key: value for key, value in document.items() if key != "mcpServers"}
    if servers:
        return {**rest, "mcpServers": servers}
    return {} if rest == {"name": EXTENSION, "version": VERSION} else rest
