"""Find the folders of Claude Code's own notes, and the project of each.

The name of a folder is a working directory with hyphens for all but letters and digits, from which the directory cannot
be recovered. So the project is known by the working directory that a session in the folder recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..vault.project import project_of
from .transcripts.claude import ClaudeReader

MOST_TRANSCRIPTS = 5


@dataclass(frozen=True)
class HostFolder:
    """One folder of notes. `project`: slug of its project; '' if no session shows it."""

    path: Path
    project: str


def claude_folders(projects: Path) -> Iterator[HostFolder]:
    """Yield the folders of notes below `<config>/projects`, by name."""
    try:
        names = sorted(os.listdir(projects))
    except OSError:
        return
    for name in names:
        folder = projects / name / "memory"
        if folder.is_dir() and not folder.is_symlink():
            cwd = working_directory(projects / name)
            yield HostFolder(folder, project_of(cwd) if cwd else "")


def working_directory(folder: Path) -> str:
    """Return the working directory of the newest session in a project's folder; '' if unknown."""
    transcripts: list[tuple[float, Path]] = []
    for path in folder.glob("*.jsonl"):
        with suppress(OSError):
            transcripts.append((path.stat().st_mtime, path))
    for _, path in sorted(transcripts, reverse=True)[:MOST_TRANSCRIPTS]:
        with suppress(OSError):
            if (cwd := ClaudeReader(path).header().cwd).startswith("/"):
                return cwd
    return ""
