"""Find and read what a repository tells an agent: CLAUDE.md, AGENTS.md, decision records, the agent's own notes.

The user did not write these files at the prompt, so they are evidence, never orders.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..runtime.errors import UsageError
from ..runtime.paths import is_note_name, read_whole
from ..vault.project import project_of
from .transcripts.claude import ClaudeReader

SourceKind = Literal["instructions", "decision", "memory", "index"]
"""`index` is made of several files of a repository."""

INSTRUCTION_NAMES = frozenset({"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md"})
NESTED_INSTRUCTIONS = (".claude/CLAUDE.md", ".github/copilot-instructions.md")
DECISION_FOLDERS = frozenset({"adr", "adrs", "decisions"})
"""Folders such as `docs/adr` and `docs/decisions`, where tools put decision records."""
PLAN_FOLDERS = frozenset({"plan", "plans"})
_TEXT_NAME = re.compile(r"[^.].*\.(?:md|markdown|rst|txt|adoc|org)|[^.]+", re.IGNORECASE)
_PLAN_WORD = re.compile(r"(?<![a-z])(?:roadmap|plan)s?(?![a-z])", re.IGNORECASE)
_DECISION_NAME = re.compile(r"(?:adr[-_]?)?\d{1,5}[-_ ].*\.md", re.IGNORECASE)
SKIPPED_FOLDERS = frozenset(
    {"node_modules", "vendor", "third_party", "third-party", "site-packages", "target", "dist", "build", "venv"}
)
"""Folders of foreign or generated code, whose instructions are not the repository's."""
MAX_FILE_BYTES = 1_000_000
MAX_FOLDERS = 5_000
MAX_DEPTH = 6
MOST_TRANSCRIPTS = 5


@dataclass(frozen=True)
class InstructionFile:
    """One file with its text. `name`: its path relative to the repository, or `memory/<file>`."""

    kind: SourceKind
    path: Path
    name: str
    project: str
    """Slug of its repository; '' for the user's own file, which holds everywhere."""
    text: str
    digest: str
    """SHA-256 of its bytes, hexadecimal."""


@dataclass(frozen=True)
class Unread:
    """A file that was left out, and why."""

    path: Path
    why: str


def repository_files(repository: Path) -> Iterator[InstructionFile | Unread]:
    """Yield the files of a repository. Raises UsageError if it is no folder."""
    root = Path(os.path.realpath(repository))
    if not os.path.isdir(root):
        raise UsageError(f"{repository} is not a folder: give the folder of a repository")
    try:
        os.listdir(root)
    except OSError as error:
        yield Unread(root, error.strerror or "cannot be read")
        return
    project = project_of(str(root))
    seen: set[str] = set()
    for path, kind in _candidates(root):
        real = os.path.realpath(path)
        if real in seen:  # AGENTS.md is often a link to CLAUDE.md
            continue
        seen.add(real)
        if not real.startswith(f"{root}/"):
            yield Unread(path, "a symbolic link that leaves the repository")
            continue
        if kind == "plan":
            yield Unread(path, "a plan says what was intended, not what holds")
            continue
        yield _read(kind, path, os.path.relpath(path, root), project)


def user_files(files: Mapping[str, Path]) -> Iterator[InstructionFile | Unread]:
    """Yield the user's own instructions for all repositories; `files`: by the name that a proposal gives as source."""
    for name, path in files.items():
        if os.path.isfile(path):
            yield _read("instructions", path, name, "")


def memory_files(folder: Path, project: str) -> Iterator[InstructionFile | Unread]:
    """Yield the agent's notes about a project: topic files, or the index if there are none (older clients)."""
    try:
        names = sorted(name for name in os.listdir(folder) if is_note_name(name))
    except OSError:
        return
    topics = [name for name in names if name != "MEMORY.md"]
    for name in topics or names:
        path = folder / name
        if path.is_symlink():
            yield Unread(path, "a symbolic link")
            continue
        yield _read("memory", path, f"memory/{name}", project)


def host_files(projects: Path) -> Iterator[InstructionFile | Unread]:
    """Yield the agent's notes about all projects below `projects` (~/.claude/projects), folder by folder.

    Their project is that of the working directory that a session in the folder recorded; '' if none did.
    """
    try:
        names = sorted(os.listdir(projects))
    except OSError:
        return
    for name in names:
        folder = projects / name / "memory"
        if folder.is_dir() and not folder.is_symlink():
            cwd = working_directory(projects / name)
            yield from memory_files(folder, project_of(cwd) if cwd else "")


def working_directory(folder: Path) -> str:
    """Return the working directory that the newest session in a project's folder recorded; '' if unknown.

    It cannot be recovered from the folder's name, which has hyphens for all but letters and digits.
    """
    transcripts: list[tuple[float, Path]] = []
    for path in folder.glob("*.jsonl"):
        with suppress(OSError):
            transcripts.append((path.stat().st_mtime, path))
    for _, path in sorted(transcripts, reverse=True)[:MOST_TRANSCRIPTS]:
        with suppress(OSError):
            if (cwd := ClaudeReader(path).header().cwd or "").startswith("/"):
                return cwd
    return ""


def _candidates(root: Path) -> Iterator[tuple[Path, SourceKind | Literal["plan"]]]:
    for name in NESTED_INSTRUCTIONS:
        if os.path.isfile(root / name):
            yield root / name, "instructions"
    for path in sorted(root.glob(".*/*")):  # Tools keep archived plans there: `.harness/PLAN.archive.20250101.md`.
        if _is_plan(path.name) and path.is_file():
            yield path, "plan"
    folders_left = MAX_FOLDERS
    for folder, folders, names in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        folders[:] = sorted(
            name for name in folders if name[0] != "." and name not in SKIPPED_FOLDERS and depth < MAX_DEPTH
        )
        folders_left -= 1
        if folders_left < 0:
            return
        decisions = Path(folder).name.lower() in DECISION_FOLDERS
        plans = not PLAN_FOLDERS.isdisjoint(part.lower() for part in Path(folder).relative_to(root).parts)
        for name in sorted(names):
            if name in INSTRUCTION_NAMES:
                yield Path(folder) / name, "instructions"
            elif decisions and _DECISION_NAME.fullmatch(name):
                yield Path(folder) / name, "decision"
            elif _is_plan(name, in_plans=plans):
                yield Path(folder) / name, "plan"


def _is_plan(name: str, *, in_plans: bool = False) -> bool:
    return _TEXT_NAME.fullmatch(name) is not None and (in_plans or _PLAN_WORD.search(name) is not None)


def _read(kind: SourceKind, path: Path, name: str, project: str) -> InstructionFile | Unread:
    found = read_whole(path, MAX_FILE_BYTES)
    if isinstance(found, str):
        return Unread(path, found)
    digest = hashlib.sha256(found[0].encode()).hexdigest()
    return InstructionFile(kind, path, name, project, found[0].removeprefix("\ufeff").replace("\r\n", "\n"), digest)
