"""Install the skill `memory`, which explains to an agent how to ask, propose and take notes, for each host.

The plugin contains it too. It is written only into a folder that belongs to it, and pages that a person changed are
kept.
"""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ..runtime.atomic_file import replace_file
from ..runtime.json_text import parse_json
from ..runtime.layout import OWN_SKILL
from ..runtime.settings import Settings
from .extension import extension_folder
from .install import plugin_installed
from .wiring import CLAUDE

SKILL = "memory"
PAGES = Path(__file__).parents[1] / "plugin" / "skills" / SKILL
_IN_THE_PLUGIN = 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/launch.sh" memory'
"""How the plugin's pages call the command where it is not on the PATH."""


def skill_folder(host: str, settings: Settings) -> Path:
    """Path of the folder in which the host looks for the skill."""
    folder = {
        CLAUDE: settings.hosts.claude_config_dir,
        "codex": settings.hosts.codex_home,
        "copilot": settings.hosts.copilot_home,
        "antigravity": settings.hosts.antigravity_home / "config",
        "opencode": settings.hosts.opencode_home,
        "gemini": extension_folder(settings),
    }[host]
    return folder / "skills" / SKILL


def is_wanted(host: str, settings: Settings) -> bool:
    """Whether `memory init` writes the skill: not if the plugin brings it, and not if memory or the agent's notes are
    switched off."""
    chosen = settings.memory
    return chosen.enabled and not chosen.disable_auto_memory and not (host == CLAUDE and plugin_installed(settings))


def has_skill(host: str, settings: Settings) -> bool:
    """Whether the skill in the host's folder is ours."""
    folder = skill_folder(host, settings)
    return not folder.is_symlink() and (folder / OWN_SKILL).is_file()


def install_skill(host: str, settings: Settings) -> str:
    """Write the skill for the host, or bring it up to date; return why that was not done, '' on success."""
    folder = skill_folder(host, settings)
    if folder.is_symlink() or (folder.exists() and not has_skill(host, settings)):
        return f"{folder} is another's: the skill `{SKILL}` was not written there"
    written = _read_written(folder)
    kept = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_down(folder, written)  # First, so that a folder left by a killed `memory init` is known as ours.
        for name, data in _pages().items():
            page = folder / name
            if page.exists() and page.read_bytes() != data and not _is_as_written(page, written):
                kept.append(name)
                continue
            replace_file(page, data, synced=False)
            written[name] = sha256(data).hexdigest()
        _write_down(folder, written)
    except OSError as error:
        return f"the skill `{SKILL}` cannot be written to {folder}: {error.strerror}"
    return f"{', '.join(kept)} in {folder}: you changed it, so it stays" if kept else ""


def remove_skill(host: str, settings: Settings) -> Path | None:
    """Remove the skill's pages that nobody has changed; return its folder, None if the skill was not ours."""
    if not has_skill(host, settings):
        return None
    folder = skill_folder(host, settings)
    written = _read_written(folder)
    with suppress(OSError):
        for name in written:
            if _is_as_written(folder / name, written):
                (folder / name).unlink()
        (folder / OWN_SKILL).unlink()
        folder.rmdir()  # Not where something of the user's is in it.
    return folder


def _pages() -> dict[str, bytes]:
    command = shlex.join([sys.executable, "-I", "-m", "memoryvault"])
    return {
        page.name: page.read_text("utf-8").replace(_IN_THE_PLUGIN, command).encode()
        for page in sorted(PAGES.glob("*.md"))
    }


def _write_down(folder: Path, written: dict[str, str]) -> None:
    replace_file(folder / OWN_SKILL, json.dumps(written, indent=1).encode(), synced=False)


def _read_written(folder: Path) -> dict[str, str]:
    """Return the hashes of the files as they were written, by their names."""
    with suppress(OSError, ValueError):
        found = parse_json((folder / OWN_SKILL).read_bytes())
        return {str(name): str(value) for name, value in found.items() if "/" not in name}
    return {}


def _is_as_written(path: Path, written: dict[str, str]) -> bool:
    with suppress(OSError):
        return sha256(path.read_bytes()).hexdigest() == written.get(path.name)
    return False
