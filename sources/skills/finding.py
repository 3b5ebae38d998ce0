"""Find SKILL.md files: the user's own, those of installed plugins, of a project, and of named folders.

The folders may be somebody else's, with links that loop or lead out, endless folders, and pipes called SKILL.md. So the
walk is bounded, and follows links only in the user's own skills folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ...runtime.json_text import parse_json
from ...runtime.layout import OWN_SKILL

SKILL_FILE = "SKILL.md"
MAX_DEPTH = 10
MAX_FOLDERS = 20_000
_PASSED_OVER = frozenset({"node_modules", "venv", "__pycache__", "site-packages", "dist", "build", "target"})
_DOT_FOLDERS = frozenset({".claude", ".agents", ".codex", ".github", ".copilot"})
"""Dot-folders of a repository that may hold skills; all others are skipped."""

Owner = Literal["user", "plugin", "project", "given"]


@dataclass(frozen=True)
class SkillRoot:
    """A folder to search, and whose skills it holds."""

    path: Path
    repo: str
    """Name before `--` in an entry's name."""
    owner: Owner
    project: str | None = None
    """Slug of the project in which the skills hold."""


@dataclass
class WalkResult:
    """Completeness and warnings of a walk."""

    complete: bool = True
    """False after a limit or an unreadable folder, so that a skill that was not found may still exist."""
    warnings: list[str] = field(default_factory=list)


def claude_roots(config_dir: Path) -> list[SkillRoot]:
    """Return the folders of the user's skills and of each installed plugin."""
    roots = [SkillRoot(config_dir / "skills", "user", "user")]
    installed = _plugin_folders(config_dir)
    if installed is None:
        # Without a list, all unpacked plugins count as installed.
        for market in _folders(config_dir / "plugins" / "cache"):
            roots += [SkillRoot(plugin, plugin.name, "plugin") for plugin in _folders(market)]
        return roots
    found = {(name.partition("@")[0], folder) for name, folders in installed.items() for folder in folders}
    return roots + [SkillRoot(folder, name, "plugin") for name, folder in sorted(found)]


def _plugin_folders(config_dir: Path) -> dict[str, list[Path]] | None:
    """Return the folders of Claude Code's plugins, by `plugin@marketplace`; None without a readable list."""
    found: dict[str, list[Path]] = {}
    try:
        listed = parse_json((config_dir / "plugins" / "installed_plugins.json").read_bytes())["plugins"]
        for name, places in listed.items():
            # In version 1 an object for each plugin, in version 2 a list of objects.
            for place in places if isinstance(places, list) else [places]:
                path = place.get("installPath") if isinstance(place, dict) else None
                if isinstance(path, str) and path.startswith("/") and "\0" not in path:
                    found.setdefault(str(name), []).append(Path(os.path.normpath(path)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []


def project_root(repository: Path, project: str) -> SkillRoot:
    """Return the folder of a project's own skills."""
    return SkillRoot(repository / ".claude" / "skills", project, "project", project)


def skill_files(root: SkillRoot, walked: WalkResult) -> Iterator[Path]:
    """Yield every SKILL.md below the root, in order of path."""
    seen: set[tuple[int, int]] = set()
    folders = 0
    pending = [(root.path, 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            status = folder.stat()
            children = sorted(os.scandir(folder), key=lambda child: child.name, reverse=True)
        except OSError as error:
            if depth or not isinstance(error, FileNotFoundError):
                walked.complete = False
                walked.warnings.append(f"{folder} cannot be read: {error.strerror}")
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        folders += 1
        if folders > MAX_FOLDERS:
            walked.complete = False
            walked.warnings.append(f"{root.path} holds more than {MAX_FOLDERS} folders: the rest was not looked at")
            return
        if any(child.name == OWN_SKILL for child in children):
            continue  # Our own skill.
        if any(child.name == SKILL_FILE and _is_file(child) for child in children):
            yield folder / SKILL_FILE
        for child in children:
            if not _is_folder(child, root.owner == "user" and depth == 0):
                continue
            if child.name in _PASSED_OVER or (child.name.startswith(".") and child.name not in _DOT_FOLDERS):
                continue
            if depth >= MAX_DEPTH:
                walked.complete = False
                walked.warnings.append(f"{child.path} lies too deep: it was not looked at")
                continue
            pending.append((Path(child.path), depth + 1))


def _is_file(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_file(follow_symlinks=False)
    except OSError:
        return False


def _is_folder(child: os.DirEntry[str], follow: bool) -> bool:
    try:
        return child.is_dir(follow_symlinks=follow)
    except OSError:
        return False
