"""SessionStart: the entries that a session is given at its start, and a reminder of what waits for the user."""

from __future__ import annotations

import os
import time

from ..runtime.days import SECONDS_PER_DAY
from ..runtime.hooklog import TIME_IS_UP, busy_notice
from ..runtime.large_change import large_change_notice
from ..runtime.layout import ALWAYS_LOAD, PROJECTS
from ..vault.automemory import FOLDER, INDEX_NAME, ON_DEMAND_KINDS, is_topic_name, render_index_block
from ..vault.core import count_words
from ..vault.marker import REFLECTED, START, list_markers, marker_path
from ..vault.pending import describe_review, find_pending_notes, group_by_place, list_groups
from ..vault.render import is_cut, render_always_load, render_block, render_hit
from ..vault.statuses import OUT_OF_USE
from .entryfile import EntryFile, is_entry_name, read_entry_file
from .sqlite import open_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

INBOX_LIMIT = 50
INCUBATOR_LIMIT = 20
SILENT_DAYS = 7
FLAGGED_LIMIT = 500
LOCK_PATIENCE_SECONDS = 0.02
DEFAULT_WORDS = 700
"""Budget of the other statements where the always-load ones have no limit."""
HOST_CHARACTERS = 10_000
"""Longest text that Claude Code passes on whole; of a longer one the model sees a preview of 2 KB."""
FLAGGED = (
    "SELECT path FROM entry_meta WHERE always_load = 1 AND +special IN ('', '_always-load')"
    " AND (+status IS NULL OR +status = 'active') AND (+project IS NULL OR +project IN ('', ?))"
    " AND (+kind IS NULL OR +kind NOT IN ('topic', 'topic-index', 'session-cost', 'idea-research'))"
    " ORDER BY path LIMIT ?"
)
"""Always-load entries in any folder, from the index: looking for the flag in all files would take too long. The `+`
keeps SQLite from indexes that hold nearly all entries."""
REST_LIMIT = 200
NOT_FOR_START = ("fix", "skill", "idea", "failure-incident", "idea-research", *ON_DEMAND_KINDS)
"""Kinds for a prompt or a call that needs them, or for no one unasked."""
REST = (
    "SELECT path FROM entry_meta WHERE always_load = 0 AND special = '' AND (project IS NULL OR project IN ('', ?))"
    f" AND lower(COALESCE(NULLIF(status, ''), 'active')) NOT IN ({', '.join(map(repr, OUT_OF_USE))})"
    f" AND lower(COALESCE(kind, '')) NOT IN ({', '.join(map(repr, NOT_FOR_START))})"
    " ORDER BY COALESCE(project, '') = '', occurrences DESC, COALESCE(surfaced_at, created) DESC, path LIMIT ?"
)
"""Other statements in use: the project's first, what was said most often, then the newest."""


class Opening:
    """The opening of a session."""

    __slots__ = ("entries", "note", "paths", "status", "text")

    def __init__(self, text: str, entries: int, paths: list[str], status: str, note: str) -> None:
        self.text = text
        """For the model: entries, the index of the agent's own notes, a reminder; '' for none."""
        self.entries = entries
        """Number of the entries in `text`."""
        self.paths = paths
        """Their vault-relative paths."""
        self.status = status
        """One line for the user."""
        self.note = note
        """What was missing, '' when nothing was."""


def build_opening(
    settings: Mapping[str, str],
    session: str,
    project: str,
    words: int,
    deadline: float,
    *,
    publish: Callable[[str, list[str]], None],
    host_loads_notes: Callable[[str], bool],
) -> Opening:
    """Read what a session of this project starts with, as far as there is time.

    `words`: budget of the entries, 0 for no limit of the always-load ones. What these leave of it is filled with other
    short statements, unless recall is cautious: a small memory is given whole, and no prompt has to find it. Entries
    that are not read by `deadline` (monotonic seconds) are left out. `publish` is called with the entries' text and
    paths before the rest is read, so that a timeout does not lose the user's rules. `host_loads_notes`: whether the
    host itself shows the session the notes in this folder; they are left out then.
    """
    loaded = "Loaded {} MemoryVault always-load entries"
    vault, markers = settings["vault"], settings["markers"]
    if not os.path.isdir(vault):
        return Opening("", 0, [], loaded.format(0), f"vault path not found: {vault}")
    found: dict[str, EntryFile] = {}
    in_folders = _list_always_load(vault, project)
    is_complete = _read_always_load(found, vault, in_folders, project, deadline)
    text, shown = render_always_load(found.values(), words)
    publish(text.strip(), [entry.path for entry in shown])
    # The index is asked only now: if it blocks, the entries of the folders are printed all the same.
    count = len(found)
    flagged = _find_indexed(settings["index_db"], FLAGGED, project, FLAGGED_LIMIT)
    is_complete = is_complete and _read_always_load(found, vault, flagged, project, deadline)
    if len(found) > count:
        text, shown = render_always_load(found.values(), words)
    paths = [entry.path for entry in shown]
    publish(text.strip(), paths)
    rest: list[EntryFile] = []
    if settings.get("eagerness") != "cautious":
        left = (words or DEFAULT_WORDS) - sum(count_words(entry.excerpt) for entry in shown)
        is_complete = _read_rest(rest, vault, settings["index_db"], project, left, deadline) and is_complete
    if rest:
        text = "\n".join(part for part in (text, render_block(rest)) if part)
        paths += [entry.path for entry in rest]
        publish(text.strip(), paths)
    is_index_shown = settings.get("auto_memory") != "0" and not host_loads_notes(notes_folder(vault, project))
    reminder = format_reminder(vault, markers, session, settings["log_file"])
    room = HOST_CHARACTERS - len(text) - len(reminder)
    index = read_project_index(vault, project, room) if is_index_shown else ""
    parts = [text.strip(), index, reminder]
    return Opening(
        "\n\n".join(part for part in parts if part),
        len(paths),
        paths,
        loaded.format(len(shown)) + (f", {len(rest)} others" if rest else ""),
        "" if is_complete else TIME_IS_UP,
    )


def _read_always_load(
    found: dict[str, EntryFile], vault: str, paths: Iterator[str], project: str, deadline: float
) -> bool:
    """Add the active always-load entries of no other project to `found`, by path; False if the time ran out."""
    for path in paths:
        if time.monotonic() >= deadline:
            return False
        entry = read_entry_file(vault, path) if path not in found else None
        if entry is not None and entry.always_load and entry.status == "active" and entry.project in ("", project):
            found[path] = entry
    return True


def _list_always_load(vault: str, project: str) -> Iterator[str]:
    """Yield the paths of the notes directly in `_always-load` of every group and of this project."""
    folders = [f"{group}/{ALWAYS_LOAD}" for group in sorted(list_groups(vault, ""))]
    if project:
        folders.append(f"{PROJECTS}/{project}/{ALWAYS_LOAD}")
    for folder in folders:
        for name in _list_names(f"{vault}/{folder}"):
            if is_entry_name(name):
                yield f"{folder}/{name}"


def _read_rest(found: list[EntryFile], vault: str, index_db: str, project: str, words: int, deadline: float) -> bool:
    """Add short statements in use that fit `words` together to `found`; False if the time ran out."""
    for path in _find_indexed(index_db, REST, project, REST_LIMIT) if words > 0 else ():
        if time.monotonic() >= deadline:
            return False
        entry = read_entry_file(vault, path)
        # One that the index does not know as always-load yet may come here: it was made one a moment ago.
        if entry is None or not entry.is_in_use or entry.project not in ("", project):
            continue
        line = render_hit(entry)
        size = count_words(line)
        if size <= words and not is_cut(line):
            found.append(entry)
            words -= size
    return True


def _find_indexed(index_db: str, query: str, project: str, limit: int) -> Iterator[str]:
    """Yield the paths that a query of the index finds; none where it cannot be read."""
    if not os.path.exists(index_db):
        return
    try:
        rows = open_database(index_db, LOCK_PATIENCE_SECONDS).execute(query, (project, limit))
        paths = [row[0] for row in rows]
    except Exception:  # noqa: BLE001  A damaged index, or none that this Python can read: the folders were read.
        return
    yield from paths


def notes_folder(vault: str, project: str) -> str:
    """Path of the folder of the agent's own notes on the project; it need not exist."""
    return f"{vault}/{PROJECTS}/{project}/{FOLDER}"


def read_project_index(vault: str, project: str, room: int) -> str:
    """Read the index of the agent's own notes on the project, as a block for the model; '' when there are no notes.

    `room`: about how many characters it may have.
    """
    names = _list_names(notes_folder(vault, project)) if project else []
    if not names:
        return ""
    topics = sum(is_topic_name(name) and is_entry_name(name) for name in names)
    entry = read_entry_file(vault, f"{PROJECTS}/{project}/{FOLDER}/{INDEX_NAME}")
    body, is_whole = (entry.body, entry.is_whole) if entry is not None else ("", True)
    path = f"{notes_folder(vault, project)}/{INDEX_NAME}"
    return render_index_block(body, path, topics, room, is_whole=is_whole)


def format_reminder(vault: str, markers: str, session: str, log_file: str) -> str:
    """Return one line if something waits for the user, nothing has been reflected for SILENT_DAYS, or half of the
    prompts got no recall by meaning, else ''."""
    counts = {place: len(paths) for place, paths in group_by_place(find_pending_notes(vault)).items()}
    parts = []
    if review := describe_review(counts):
        waits = "waits" if counts["proposals"] + counts["questions"] == 1 else "wait"
        parts.append(f"{' and '.join(review)} {waits} for review (`memory review`)")
    if counts["inbox"] > INBOX_LIMIT:
        parts.append(f"the inbox holds {counts['inbox']} entries (`memory vault inbox`)")
    if counts["ideas"] > INCUBATOR_LIMIT:
        parts.append(f"the incubator holds {counts['ideas']} ideas (`memory idea list`)")
    if change := large_change_notice(markers, time.time()):
        parts.append(change)
    days = count_silent_days(markers, session, time.time())
    if days >= SILENT_DAYS:
        parts.append(f"nothing was reflected for {days} days (`memory doctor`)")
    if busy := busy_notice(log_file, time.time()):
        parts.append(busy)
    return f"MemoryVault: {'; '.join(parts)}." if parts else ""


def count_silent_days(markers: str, session: str, now: float) -> int:
    """Return whole days since a session was last reflected or, if none ever was, since the oldest one's last event;
    else 0."""
    reflected = [_age(marker_path(markers, sid, REFLECTED), now) for sid in list_markers(markers, REFLECTED)]
    if reflected:
        return int(min(reflected) // SECONDS_PER_DAY)
    unreflected = [_age(marker_path(markers, sid), now) for sid in list_markers(markers, START) if sid != session]
    return int(max(unreflected, default=0.0) // SECONDS_PER_DAY)


def _age(path: str, now: float) -> float:
    try:
        return max(now - os.stat(path).st_mtime, 0.0)
    except OSError:
        return 0.0


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
