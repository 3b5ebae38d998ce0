"""Keep one entry for each skill on this machine, in step with its source.

Their files are untrusted: what is read of them is limited and scrubbed. Each step changes one file, so an interrupted
run can simply be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..pipelines.scrub import scrub
from ..pipelines.skills import (
    Skill,
    SkillStep,
    body_of,
    field_of,
    gives_orders,
    is_lookalike,
    merged_body,
    plan_skills,
    quote_digest,
    quote_of,
    title_of,
)
from ..runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound
from ..runtime.layout import ARCHIVE, DEFAULT_GROUP, SKILLS, home_folder
from ..runtime.settings import Settings
from ..runtime.slug import free_slug
from ..sources.skills.finding import SkillRoot, WalkResult, claude_roots, project_root, skill_files
from ..sources.skills.reading import read_skill
from ..vault.entry import SKILL_KIND, Entry, Source
from ..vault.fields import StoreValue
from ..vault.marker import every_marker
from ..vault.project import project_of
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from .cursors import Cursors

SCAN = "skills"
"""Scan name of the folders that are searched in addition to the host's own."""
GIVEN: Mapping[str, Any] = {"owner": "given"}
"""A folder that the user chose: its skills apply in every project."""
MAX_SKILLS = 5000


@dataclass(frozen=True)
class Scan:
    """The skills found below the roots."""

    skills: tuple[Skill, ...]
    unreadable: tuple[str, ...]
    """Paths of skills that exist but could not be read."""
    uncertain: tuple[str, ...]
    """Folders that could not be read completely: a skill missing there may still exist."""
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class SkillIndexReport:
    """The results of an indexing run."""

    written: int
    updated: int
    restored: int
    archived: int
    unchanged: int
    warnings: tuple[str, ...]

    @property
    def changed(self) -> int:
        return self.written + self.updated + self.restored + self.archived


# Where to look


def known_roots(settings: Settings) -> Cursors:
    """Return the folders that are searched besides the host's own. What is set to GIVEN is searched from now on; the
    entries of what is forgotten are archived by the next indexing."""
    return Cursors(settings.state.state_db, SCAN)


def all_roots(
    settings: Settings,
    cwd: str = "",
    *,
    also: Sequence[Path] = (),
    without: Collection[Path] = (),
    remember: bool = True,
) -> list[SkillRoot]:
    """Return the host's folders, the projects of sessions, and the named folders. Remembers new projects if possible.

    `also` and `without` are treated as if they were remembered and forgotten.
    """
    cursors = known_roots(settings)
    known: dict[str, Mapping[str, Any]] = dict(cursors.all())
    home = home_folder(settings.environment)
    for folder in sorted({cwd, *_session_folders(settings)} - {""}):
        repository = _with_skills(folder, home)
        if repository is not None and str(repository) not in known:
            known[str(repository)] = {"owner": "project", "project": project_of(str(repository), home)}
            if remember:
                cursors.set(str(repository), known[str(repository)])
    roots = claude_roots(settings.hosts.claude_config_dir)
    named = {**known, **{str(path): GIVEN for path in also}}
    for path, value in sorted(named.items()):
        if Path(path) in without:
            continue
        if value.get("owner") == "project":
            roots.append(project_root(Path(path), str(value.get("project") or Path(path).name)))
        else:
            roots.append(SkillRoot(Path(path), Path(path).name, "given"))
    return roots


def _session_folders(settings: Settings) -> set[str]:
    return {marker.cwd for _, marker in every_marker(settings.state.markers) if marker is not None}


def _with_skills(cwd: str, home: str) -> Path | None:
    """Return the nearest folder at or above `cwd`, below the home folder, that contains skills."""
    if not cwd.startswith("/"):
        return None
    folder = Path(os.path.realpath(cwd))
    for each in (folder, *folder.parents):
        if str(each) in ("/", os.path.realpath(home)):
            return None
        if os.path.isdir(each / ".claude" / "skills"):
            return each
    return None


# Reading


def scan(roots: Sequence[SkillRoot], home: str) -> Scan:
    """Read each skill below the roots once, for the first root that contains it."""
    skills: dict[str, Skill] = {}
    unreadable: list[str] = []
    uncertain: list[str] = []
    warnings: list[str] = []
    for root in roots:
        base = root.path.parents[1] if root.owner == "project" and len(root.path.parents) > 1 else root.path
        if root.owner in ("given", "project") and not base.exists() and not base.parent.exists():
            uncertain.append(_shown(str(root.path), home))
            warnings.append(f"{base} is not there; its entries stay as they are")
            continue
        walked = WalkResult()
        for file in skill_files(root, walked):
            shown = _shown(str(file), home)
            if shown in skills or not shown.isprintable():
                continue
            if len(skills) >= MAX_SKILLS:
                walked.complete = False
                walked.warnings.append(f"more than {MAX_SKILLS} skills: the rest was not read")
                break
            try:
                text = read_skill(file)
            except OSError as error:
                unreadable.append(shown)
                warnings.append(f"{shown}: {error.strerror}")
                continue
            if text is None:
                warnings.append(f"{shown}: it is empty")
                continue
            warnings += [f"{shown}: {warning}" for warning in text.warnings]
            if is_lookalike(text.name):
                warnings.append(f"{shown}: its name {text.name!r} mixes alphabets: it may only look like another's")
            if gives_orders(f"{text.name} {text.description} {text.summary}"):
                warnings.append(f"{shown}: its description gives orders to the agent that reads it; it is not shown")
            skills[shown] = Skill(
                path=shown,
                repo=root.repo,
                name=scrub(text.name),
                description=scrub(text.description),
                summary=scrub(text.summary),
                version=scrub(text.version),
                digest=text.digest,
                project=root.project,
            )
        warnings += walked.warnings
        if not walked.complete:
            uncertain.append(_shown(str(root.path), home))
    return Scan(tuple(skills.values()), tuple(unreadable), tuple(uncertain), tuple(warnings))


def _shown(path: str, home: str) -> str:
    """Return the path with `~` for the home folder: entries are synced, and the user's name is private."""
    return "~" + path[len(home) :] if home != "/" and path.startswith(home.rstrip("/") + "/") else path


# Writing


def index_skills(
    found: Scan, store: VaultStore, check: Callable[[], None] = lambda: None, *, dry_run: bool = False
) -> SkillIndexReport:
    """Update the entries. `check` may raise before each write. Raises VaultUnavailable."""
    entries = _our_notes(store)
    paths = {skill.path for skill in found.skills} | set(found.unreadable)

    def is_gone(entry: Entry) -> bool:
        path = field_of(entry, "path")
        return path not in paths and not any(path.startswith(folder.rstrip("/") + "/") for folder in found.uncertain)

    ours = {entry.path for entry in entries}
    taken = {path for path in store.walk() if path.startswith(SKILLS + "/") and path not in ours}
    steps = plan_skills(found.skills, entries, is_gone, taken)
    warnings = list(found.warnings)
    counts = {"written": 0, "updated": 0, "restored": 0, "archived": 0}
    for step in steps:
        check()
        if not dry_run:
            try:
                warning = _do(step, store)
            except (EditConflict, EntryExists, EntryNotFound, EntryInvalid) as error:
                warnings.append(f"left for the next time: {error}")
                continue
            if warning:
                warnings.append(warning)
        counts[step.name] += 1
    touched = sum(step.skill is not None for step in steps)
    return SkillIndexReport(**counts, unchanged=len(found.skills) - touched, warnings=tuple(warnings))


def _our_notes(store: VaultStore) -> list[Entry]:
    archive = f"{DEFAULT_GROUP}/{ARCHIVE}/"
    found = []
    for path in store.walk():
        if not path.startswith((SKILLS + "/", archive)):
            continue
        with suppress(EntryNotFound, EntryInvalid):
            entry = store.read(path)
            is_ours = entry.kind == SKILL_KIND and isinstance(entry.extra.get("skill_path"), str)
            if is_ours and (not path.startswith(archive) or entry.status == "archived"):
                found.append(entry)
    return found


def _do(step: SkillStep, store: VaultStore) -> str | None:
    """Carry out one step; return a warning for the user, if any."""
    skill = step.skill
    entry = store.read(step.entry.path) if step.entry is not None else None  # It may have been edited since.
    if skill is None:
        if entry is not None:
            _archive(store, entry)
        return None
    if entry is None:
        fields: dict[str, StoreValue] = {
            "kind": SKILL_KIND,
            "tags": [SKILL_KIND],
            "group": SKILLS,
            "project": skill.project,
            "source": Source(SKILL_KIND),
            **_skill_fields(skill, quote_digest(quote_of(skill))),
        }
        store.create(step.target, fields, _ours(title_of(skill.name, skill.repo)), _ours(body_of(skill)))
        return None
    if step.target != entry.path:
        slug = step.target.rsplit("/", 1)[-1].removesuffix(".md")
        entry = _move(store, entry, step.target, {"slug": slug, "status": "active"})
    body, edited = merged_body(entry, skill)
    fields = _skill_fields(skill, field_of(entry, "quote") if edited else quote_digest(quote_of(skill)))
    store.update(entry.path, entry.content_hash, fields=fields, body=_ours(body))
    return f"{entry.path}: you edited what it quotes, so that stays; the skill has changed" if edited else None


def _archive(store: VaultStore, entry: Entry) -> None:
    name = entry.path.rsplit("/", 1)[-1].removesuffix(".md")
    used: set[str] = set()
    while True:
        slug = free_slug(name, used)
        try:
            _move(store, entry, f"{DEFAULT_GROUP}/{ARCHIVE}/{slug}.md", {"status": "archived"})
            return
        except EntryExists:
            used.add(slug)


def _move(store: VaultStore, entry: Entry, target: str, fields: Mapping[str, StoreValue]) -> Entry:
    """Put an entry at another path. Done again after a crash in between, it only removes the old file.

    Raises EntryExists, EditConflict.
    """
    text = store.render_edit(entry.text, fields)
    try:
        store.write_text(target, text, None)
    except EntryExists:
        if store.read(target).text != text:
            raise
    store.remove(entry.path, entry.content_hash)
    return store.read(target)


def _skill_fields(skill: Skill, quote: str) -> dict[str, StoreValue]:
    fields = {
        "skill_path": skill.path,
        "skill_repo": skill.repo,
        "skill_name": skill.name,
        "skill_version": skill.version,
        "skill_digest": skill.digest,
        "skill_quote": quote,
    }
    return {key: _ours(value) if value else None for key, value in fields.items()}


def _ours(text: str) -> Scrubbed:
    return Scrubbed.trusted(text, reason="scrubbed where it was read; paths and digests are this machine's")
