"""List the SKILL.md files below a folder of this machine, as a source of patterns."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ...runtime.paths import read_regular
from ..skills.finding import SKILL_FILE, SkillRoot, WalkResult, skill_files
from ..skills.reading import READ_BYTES, read_skill
from .source_item import SourceItem, source_item

MAX_FILES = 5000


def folder_items(folder: Path) -> list[SourceItem]:
    """Return an item for each SKILL.md. Links are not followed, unreadable files left out. Raises OSError."""
    root = Path(os.path.realpath(folder))
    os.scandir(root).close()
    found: list[SourceItem] = []
    for path in skill_files(SkillRoot(root, root.name, "given"), WalkResult()):
        try:
            skill = read_skill(path)
        except OSError:
            continue
        name, description = (skill.name, skill.description) if skill else (path.parent.name, "")
        found.append(source_item(path.parent.as_uri(), name, description))
        if len(found) == MAX_FILES:
            break
    return found


def skill_text(url: str, folder: Path) -> str:
    """Return the text of an item of `folder_items(folder)`, by its address; '' for any other, or if it is gone."""
    root, parts = os.path.realpath(folder), urlsplit(url)
    path = Path(os.path.realpath(url2pathname(parts.path))) / SKILL_FILE
    if parts.scheme != "file" or not path.is_relative_to(root):
        return ""
    try:
        return read_regular(path, READ_BYTES)[0].decode("utf-8", "replace")
    except OSError:
        return ""
