"""SessionStart: what every session gets, and one line about what waits for the user."""

from __future__ import annotations

import os
import time

from ..vault.automemory import FOLDER, INDEX_NAME, is_topic_name, splice
from ..vault.days import SECONDS_PER_DAY
from ..vault.layout import ALWAYS_LOAD, PROJECTS
from ..vault.marker import REFLECTED, START, list_markers, marker_path
from ..vault.render import clean, render_always_load
from ..vault.pending import describe_review, find_pending_notes, group_by_place
from .entryfile import EntryFile, is_entry_name, read_entry_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

INBOX_LIMIT = 50
INCUBATOR_LIMIT = 20
SILENT_DAYS = 7


class Opening:
    """What a session starts with."""

    __slots__ = ("entries", "note", "paths", "status", "text")

    def __init__(self, text: str, entries: int, paths: list[str], status: str, note: str) -> None:
        self.text = text
        self.entries = entries
        self.paths = paths
        self.status = status
        self.note = note


def opening(
    vault: str,
    harness: str,
    session: str,
    project: str,
    token_budget: int,
    deadline: float,
    *,
    hand_in: Callable[[str, list[str]], None],
    auto_memory: bool = True,
    held: Callable[[str], bool] = lambda folder: False,
) -> Opening:
    """The text for a session of `project`; reading stops at `deadline` (monotonic) with what there is.

    `held` tells whether the host itself shows the session the notes in a folder: then they are not said twice.
    `hand_in` is given the entries' text and paths before the rest is read: the user's rules are not lost with it.
    """
    loaded = "Loaded {} MemoryVault always-load entries"
    if not os.path.isdir(vault):
        return Opening("", 0, [], loaded.format(0), f"vault path not found: {vault}")
    entries, complete = always_load_entries(vault, project, deadline)
    text, shown = render_always_load(entries, token_budget)
    paths = [entry.path for entry in shown]
    hand_in(text.strip(), paths)
    index = project_index(vault, project) if auto_memory and not held(notes_folder(vault, project)) else ""
    parts = [text.strip(), index, waiting(vault, harness, session)]
    note = "" if complete else "time budget exceeded"
    return Opening(
        "\n\n".join(part for part in parts if part),
        len(shown),
        paths,
        loaded.format(len(shown)),
        note,
    )


def always_load_entries(vault: str, project: str, deadline: float) -> tuple[list[EntryFile], bool]:
    """Active entries of every group's `_always-load` and of this project's; False when time ran out."""
    folders = [f"{group}/{ALWAYS_LOAD}" for group in _folders(vault)]
    if project:
        folders.append(f"{PROJECTS}/{project}/{ALWAYS_LOAD}")
    entries: list[EntryFile] = []
    for folder in folders:
        for name in _names(f"{vault}/{folder}"):
            if time.monotonic() >= deadline:
                return entries, False
            if not is_entry_name(name):
                continue
            entry = read_entry_file(vault, f"{folder}/{name}")
            if entry is not None and entry.status == "active" and entry.project in ("", project):
                entries.append(entry)
    return entries, True


def notes_folder(vault: str, project: str) -> str:
    """Where the agent's own notes on the project are; the folder need not be there."""
    return f"{vault}/{PROJECTS}/{project}/{FOLDER}"


def project_index(vault: str, project: str) -> str:
    """The index of the agent's own notes on the project, as a block; '' when there are none."""
    names = _names(notes_folder(vault, project)) if project else []
    if not names:
        return ""
    topics = sum(is_topic_name(name) and is_entry_name(name) for name in names)
    entry = read_entry_file(vault, f"{PROJECTS}/{project}/{FOLDER}/{INDEX_NAME}")
    return splice(
        clean(entry.body) if entry is not None else "", f"{notes_folder(vault, project)}/{INDEX_NAME}", topics
    )


def waiting(vault: str, harness: str, session: str) -> str:
    """One line when something waits for the user or nothing has been reflected for a week, else ''."""
    counts = {place: len(paths) for place, paths in group_by_place(find_pending_notes(vault)).items()}
    parts = []
    if reviews := describe_review(counts):
        waits = "waits" if counts["proposals"] + counts["questions"] == 1 else "wait"
        parts.append(f"{' and '.join(reviews)} {waits} for review (`memory review`)")
    if counts["inbox"] > INBOX_LIMIT:
        parts.append(f"the inbox holds {counts['inbox']} entries (`memory inbox`)")
    if counts["ideas"] > INCUBATOR_LIMIT:
        parts.append(f"the incubator holds {counts['ideas']} ideas (`memory idea list`)")
    days = silent_days(harness, session, time.time())
    if days >= SILENT_DAYS:
        parts.append(f"nothing was reflected for {days} days (`memory doctor`)")
    return f"MemoryVault: {'; '.join(parts)}." if parts else ""


def silent_days(harness: str, session: str, now: float) -> int:
    """Whole days since a session was last reflected, or since the oldest one that never was; else 0."""
    try:
        reflected = [_age(marker_path(harness, sid, REFLECTED), now) for sid in list_markers(harness, REFLECTED)]
        if reflected:
            return int(min(reflected) // SECONDS_PER_DAY)
        waiting = [_age(marker_path(harness, sid), now) for sid in list_markers(harness, START) if sid != session]
    except OSError:
        return 0
    return int(max(waiting, default=0.0) // SECONDS_PER_DAY)


def _age(path: str, now: float) -> float:
    try:
        return max(now - os.stat(path).st_mtime, 0.0)
    except OSError:
        return 0.0


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _folders(vault: str) -> list[str]:
    """Groups: the vault's own folders that are neither hidden nor special."""
    try:
        with os.scandir(vault) as items:
            return sorted(item.name for item in items if item.name[0] not in "._" and item.is_dir())
    except OSError:
        return []
