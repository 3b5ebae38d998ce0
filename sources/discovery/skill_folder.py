"""The SKILL.md files below a folder of this machine, as a source of patterns."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import yaml

from .source_item import SourceItem, source_item

MAX_FILES = 5000
MAX_DEPTH = 12
HEAD_BYTES = 64_000
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv", "dist", "build"})


def folder_items(folder: Path) -> list[SourceItem]:
    """One for each, sorted by path. Links are not followed; what cannot be read is left out. Raises OSError."""
    root = Path(os.path.realpath(folder))
    os.scandir(root).close()
    found: list[SourceItem] = []
    for current, folders, names in os.walk(root):
        depth = len(Path(current).relative_to(root).parts)
        folders[:] = (
            sorted(f for f in folders if not f.startswith(".") and f not in _PASSED_OVER) if depth < MAX_DEPTH else []
        )
        if "SKILL.md" in names and len(found) < MAX_FILES:
            path = Path(current) / "SKILL.md"
            if path.is_file() and not path.is_symlink():
                name, description = _head(path)
                found.append(source_item(path.parent.as_uri(), name or path.parent.name, description))
    return found


def skill_text(url: str, folder: Path) -> str:
    """The SKILL.md of an item of `folder_items(folder)`, by its address; '' for any other address, or if it is gone."""
    root, parts = os.path.realpath(folder), urlsplit(url)
    path = Path(os.path.realpath(url2pathname(parts.path))) / "SKILL.md"
    if parts.scheme != "file" or not path.is_relative_to(root) or path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _head(path: Path) -> tuple[str, str]:
    """(name, description) of its frontmatter; '' for what it does not say or says in broken YAML."""
    try:
        with path.open("rb") as file:
            text = file.read(HEAD_BYTES).decode("utf-8", "replace").lstrip("\ufeff")
    except OSError:
        return "", ""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return "", ""
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    header = lines[1:end]
    if any("&" in line and "*" in text for line in header):  # an alias can unfold a small text to any size
        return _by_line(header)
    try:
        fields = yaml.safe_load("\n".join(header))
    except (yaml.YAMLError, ValueError, RecursionError):
        return _by_line(header)
    if not isinstance(fields, dict):
        return "", ""
    return str(fields.get("name") or ""), str(fields.get("description") or "")


def _by_line(header: list[str]) -> tuple[str, str]:
    values = {}
    for line in header:
        key, separator, value = line.partition(":")
        if separator and key in ("name", "description"):
            values[key] = value.strip().strip("\"'")
    return values.get("name", ""), values.get("description", "")
