"""Convert the notes of an older system (ContextVault) into entries (memory import migrate). The old files are only
read.

Each note is one act of the journal: a migration can be undone, a killed one continues where it stopped, and a note that
was edited since stays. A migrated note names its source in its frontmatter, so that it is not migrated twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ..pipelines.scrub import Policy, findings, scrub
from ..runtime.days import local_day
from ..runtime.errors import EntryInvalid, UsageError
from ..runtime.layout import DEFAULT_GROUP, PROJECTS
from ..runtime.paths import is_note_name, read_whole
from ..runtime.slug import free_slug, slugify
from ..vault.entry import STATUSES, parse_entry, parse_text
from ..vault.fields import StoreValue
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .journal import Change, Journal

PROVENANCE = "migrated_from"
SYSTEM = "contextvault"
MAX_NOTE_BYTES = 8_000_000
RENAMED_PROJECTS = {"ai-context-system": "memoryvault"}
"""Projects that have another name now."""


@dataclass(frozen=True)
class MigratedFile:
    """One file of the old vault: its result, its path, and why if nothing is done."""

    source: str
    """Its path relative to the migrated folder, with forward slashes."""
    result: Literal["migrate", "known", "left"]
    path: str | None = None
    why: str = ""
    secrets: int = 0
    """Number of secrets replaced."""


def migrate(
    root: Path,
    store: VaultStore,
    journal: Journal,
    *,
    dry_run: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> list[MigratedFile]:
    """Migrate a ContextVault into a vault; with `dry_run` only say what would be done.

    Raises UsageError for a folder without `domains/` and `projects/`, VaultUnavailable.
    """
    store.require_vault()
    run = journal.new_run("migrate")
    done = []
    with nullcontext() if dry_run else journal.locked():
        migrated = _migrated_before(store)
        taken: set[str] = set()
        for file, name in _files(root):
            told, text = _convert(file, name, store, migrated, taken)
            if told.path is not None and text is not None and not dry_run:
                change = Change(told.path, None, text)
                journal.commit([change], run=run, actor="migrate", what=f"migrated from {SYSTEM}")
            done.append(told)
            if on_progress is not None:
                on_progress(len(done))
    return done


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield path and name of every file below `domains/` and `projects/`."""
    parts = [root / part for part in ("domains", "projects") if (root / part).is_dir()]
    if not parts:
        raise UsageError(f"{root} is no ContextVault: it has neither domains/ nor projects/")
    for part in parts:
        for folder, folders, names in os.walk(part):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for path in (Path(folder, name) for name in sorted(names) if not name.startswith(".")):
                yield path, path.relative_to(root).as_posix()


def _migrated_before(store: VaultStore) -> dict[str, str]:
    """Return where each note of earlier runs is now, by its origin; the user may have moved it."""
    found = {}
    for path, data in store.contents():
        if PROVENANCE.encode() in data and (origin := parse_entry(path, data).extra.get(PROVENANCE)):
            found[str(origin)] = path
    return found


def _convert(
    file: Path, name: str, store: VaultStore, migrated: dict[str, str], taken: set[str]
) -> tuple[MigratedFile, Scrubbed | None]:
    """Return what becomes of a file, and the text of the entry that it becomes. Adds the entry's path to `taken`."""

    def left(why: str) -> tuple[MigratedFile, None]:
        return MigratedFile(name, "left", why=why), None

    if not is_note_name(file.name):
        return left("no markdown note: it stays where it is")
    if file.is_symlink():
        return left("a symbolic link")
    found = read_whole(file, MAX_NOTE_BYTES)
    if isinstance(found, str):
        return left(found)
    place = _new_place(name)
    if place is None:
        return left("it belongs to no domain and no project")
    text, status = found
    origin = scrub(f"{SYSTEM}/{name}", Policy.SECRETS)
    if origin in migrated:
        return MigratedFile(name, "known", migrated[origin], "it was migrated before"), None

    def is_taken(slug: str) -> bool:
        path = f"{place.folder}/{slug}.md"
        return path in taken or store.exists(path)

    slug = free_slug(place.slug, is_taken)
    path = f"{place.folder}/{slug}.md"
    taken.add(path)
    clean = scrub(text, Policy.SECRETS)
    try:
        entry = parse_text(name, clean)
        day = local_day(status.st_mtime)
        fields: dict[str, StoreValue] = {
            "kind": place.kind,
            "status": entry.status if entry.status in STATUSES else "active",
            "created": entry.created or day,
            "updated": entry.updated or day,
            "group": place.group,
            "slug": slug,
            "always_load": False,
            "project": place.project,
            PROVENANCE: origin,
        }
        # Its own text and other fields stay in order, byte for byte.
        document = store.render_edit(str(clean), fields)
    except EntryInvalid as error:
        return left(str(error))
    return MigratedFile(name, "migrate", path, secrets=len(findings(text, Policy.SECRETS))), document


class _Place(NamedTuple):
    """The new place of a note. If its path is taken, a number is added."""

    group: str
    folder: str
    slug: str
    kind: str
    project: str | None


def _new_place(name: str) -> _Place | None:
    """Return the new place of `domains/…` or `projects/<project>/…`; None for any other path.

    The names of deeper folders become part of the note's name, so that no two notes get the same path.
    """
    top, *rest = name.removesuffix(".md").split("/")
    if top == "domains" and rest:
        return _Place(DEFAULT_GROUP, f"{DEFAULT_GROUP}/domains", slugify(" ".join(rest)), "domain-reference", None)
    if top != "projects" or len(rest) < 2:
        return None
    project = RENAMED_PROJECTS.get(rest[0], slugify(rest[0]))
    group = f"{PROJECTS}/{project}"
    if rest[1] == "conversations" and len(rest) > 2:
        return _Place(group, f"{group}/conversations", slugify(" ".join(rest[2:])), "conversation", project)
    return _Place(group, f"{group}/notes", slugify(" ".join(rest[1:])), "project-note", project)
