"""Convert the notes of an older system (ContextVault) into entries (memory import migrate). The old files are only
read.

Each note is one act of the journal: a migration can be undone, a killed one continues where it stopped, and a note that
was edited since stays. A migrated note names its source in its frontmatter, so that it is not migrated twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..pipelines.scrub import Policy, findings, scrub
from ..runtime.errors import EntryInvalid
from ..runtime.layout import DEFAULT_GROUP, PROJECTS
from ..runtime.slug import free_slug, slugify
from ..sources.contextvault import OldNote, contextvault_notes
from ..vault.entry import STATUSES, parse_entry, parse_text
from ..vault.fields import StoreValue
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .journal import Change, Journal

PROVENANCE = "migrated_from"
SYSTEM = "contextvault"
DOMAIN_KIND = "domain-reference"
CONVERSATION_KIND = "conversation"
NOTE_KIND = "project-note"
RENAMED_PROJECTS = {"ai-context-system": "memoryvault"}
"""Projects that have another name now."""

Result = Literal["migrate", "known", "left"]


@dataclass(frozen=True)
class NewPlace:
    """The new place of a note. If its path is taken, a number is added."""

    folder: str
    slug: str
    kind: str
    group: str
    project: str | None


@dataclass(frozen=True)
class MigratedFile:
    """One file of the old vault: its result, its path, and why if nothing is done."""

    source: str
    result: Result
    path: str | None = None
    why: str = ""
    secrets: int = 0
    """Number of secrets replaced."""


_Step = tuple[MigratedFile, Scrubbed | None]
"""A file, and the text of the entry it becomes."""


class Migration:
    """Migrates a ContextVault into a vault."""

    def __init__(self, root: Path, store: VaultStore, journal: Journal) -> None:
        self._root = root
        self._store = store
        self._journal = journal

    def plan(self) -> list[MigratedFile]:
        """Return what a migration would do. Raises UsageError, VaultUnavailable."""
        self._store.require_vault()
        return [told for told, _ in self._steps()]

    def carry_out(self, on_progress: Callable[[int], None] | None = None) -> list[MigratedFile]:
        """Migrate. Raises as `plan` does."""
        run = self._journal.new_run("migrate")
        done = []
        with self._journal.locked():
            for number, (told, text) in enumerate(self._steps(), start=1):
                if told.result == "migrate" and told.path is not None:
                    change = Change(told.path, None, text)
                    self._journal.commit([change], run=run, actor="migrate", what=f"migrated from {SYSTEM}")
                done.append(told)
                if on_progress is not None:
                    on_progress(number)
        return done

    def _steps(self) -> list[_Step]:
        origins = self._origins()
        taken: set[str] = set()
        steps: list[_Step] = []
        for old in contextvault_notes(self._root):
            place = new_place(old.name)
            if not isinstance(old, OldNote):
                steps.append((MigratedFile(old.name, "left", why=old.why), None))
            elif place is None:
                steps.append((MigratedFile(old.name, "left", why="it belongs to no domain and no project"), None))
            else:
                steps.append(self._step(old, place, origins, taken))
        return steps

    def _step(self, old: OldNote, place: NewPlace, origins: dict[str, str], taken: set[str]) -> _Step:
        origin = str(scrub(f"{SYSTEM}/{old.name}", Policy.SECRETS))
        if origin in origins:
            return MigratedFile(old.name, "known", origins[origin], "it was migrated before"), None

        def is_taken(slug: str) -> bool:
            path = f"{place.folder}/{slug}.md"
            return path in taken or self._store.exists(path)

        slug = free_slug(place.slug, is_taken)
        path = f"{place.folder}/{slug}.md"
        taken.add(path)
        try:
            text = self._text(old, place, slug, origin)
        except EntryInvalid as error:
            return MigratedFile(old.name, "left", why=str(error)), None
        return MigratedFile(old.name, "migrate", path, secrets=len(findings(old.text, Policy.SECRETS))), text

    def _origins(self) -> dict[str, str]:
        """Return where each note of earlier runs is now, by its origin; the user may have moved it."""
        found = {}
        for path, data in self._store.contents():
            if PROVENANCE.encode() in data and (origin := parse_entry(path, data).extra.get(PROVENANCE)):
                found[str(origin)] = path
        return found

    def _text(self, old: OldNote, place: NewPlace, slug: str, origin: str) -> Scrubbed:
        """Return the note with an entry's fields; its own text and other fields stay in order, byte for byte."""
        clean = scrub(old.text, Policy.SECRETS)
        entry = parse_text(old.name, clean)
        status = entry.status if entry.status in STATUSES else "active"
        fields: dict[str, StoreValue] = {
            "kind": place.kind,
            "status": status,
            "created": entry.created or old.day,
            "updated": entry.updated or old.day,
            "group": place.group,
            "slug": slug,
            "always_load": False,
            "project": place.project,
            PROVENANCE: Scrubbed.trusted(origin, reason="scrubbed by the caller"),
        }
        return self._store.render_edit(str(clean), fields)


def new_place(name: str) -> NewPlace | None:
    """Return the new place of `domains/…` or `projects/<project>/…`; None for any other path.

    The names of deeper folders become part of the note's name, so that no two notes get the same path.
    """
    top, *rest = name.removesuffix(".md").split("/")
    if top == "domains" and rest:
        return NewPlace(f"{DEFAULT_GROUP}/domains", slugify(" ".join(rest)), DOMAIN_KIND, DEFAULT_GROUP, None)
    if top != "projects" or len(rest) < 2:
        return None
    project = RENAMED_PROJECTS.get(rest[0], slugify(rest[0]))
    group = f"{PROJECTS}/{project}"
    if rest[1] == "conversations" and len(rest) > 2:
        return NewPlace(f"{group}/conversations", slugify(" ".join(rest[2:])), CONVERSATION_KIND, group, project)
    return NewPlace(f"{group}/notes", slugify(" ".join(rest[1:])), NOTE_KIND, group, project)
