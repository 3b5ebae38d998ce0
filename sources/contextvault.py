"""Read the notes of a ContextVault, the predecessor of MemoryVault: domains and projects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..runtime.days import local_day
from ..runtime.errors import UsageError
from ..runtime.paths import is_note_name, read_whole

MAX_NOTE_BYTES = 8_000_000


@dataclass(frozen=True)
class OldNote:
    """One markdown file. `name`: its path relative to the migrated folder, with forward slashes."""

    name: str
    text: str
    day: date
    """Day on which it was last written."""


@dataclass(frozen=True)
class OldFile:
    """A file that is not migrated, and why."""

    name: str
    why: str


def contextvault_notes(root: Path) -> Iterator[OldNote | OldFile]:
    """Yield every file below `domains/` and `projects/`. Raises UsageError for a folder with neither."""
    real = Path(os.path.realpath(root))
    parts = [part for part in ("domains", "projects") if os.path.isdir(real / part)]
    if not parts:
        raise UsageError(f"{root} is no ContextVault: it has neither domains/ nor projects/")
    for part in parts:
        for folder, folders, names in os.walk(real / part):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(name for name in names if not name.startswith(".")):
                path = Path(folder) / name
                yield _read(path, path.relative_to(real).as_posix())


def _read(path: Path, name: str) -> OldNote | OldFile:
    if not is_note_name(path.name):
        return OldFile(name, "no markdown note: it stays where it is")
    if path.is_symlink():
        return OldFile(name, "a symbolic link")
    found = read_whole(path, MAX_NOTE_BYTES)
    return OldFile(name, found) if isinstance(found, str) else OldNote(name, found[0], local_day(found[1].st_mtime))
