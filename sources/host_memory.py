"""Where Claude Code keeps its own notes, and which project each folder is about. Read only: these files are Claude's.

The name of a folder is the working directory with all but letters and digits as hyphens, which can't be turned back; so
the project is told by the working directory that a session in the folder recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..vault.project import project_of
from .transcripts.lines import parse_object

MOST_LINES = 200
"""Within so many lines of a transcript one has the working directory: the first that is not bookkeeping."""
MOST_LINE_BYTES = 1_000_000
MOST_TRANSCRIPTS = 5


@dataclass(frozen=True)
class HostFolder:
    """One folder of notes; `project` is '' when no session tells which project it is about."""

    path: Path
    project: str


def claude_folders(projects: Path) -> Iterator[HostFolder]:
    """The folders of notes below `<config>/projects`, by name."""
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
    """The working directory of the newest session in one project's folder; '' when none tells."""
    transcripts: list[tuple[float, Path]] = []
    for path in folder.glob("*.jsonl"):
        try:
            transcripts.append((path.stat().st_mtime, path))
        except OSError:
            continue
    for _, path in sorted(transcripts, reverse=True)[:MOST_TRANSCRIPTS]:
        if cwd := _recorded(path):
            return cwd
    return ""


def _recorded(transcript: Path) -> str:
    try:
        with transcript.open("rb") as lines:
            for _ in range(MOST_LINES):
                line = lines.readline(MOST_LINE_BYTES)
                if not line:
                    break
                record = parse_object(line) if b'"cwd"' in line else None
                cwd = record.get("cwd") if record else None
                if isinstance(cwd, str) and cwd.startswith("/"):
                    return cwd
    except OSError:
        return ""
    return ""
