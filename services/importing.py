"""Copy the host's own notes into topics of the vault, and keep the copies in step.

Claude Code writes and loads these files by itself, so they are only read. The copies are kept apart from the project's
own notes and are not indexed, so that a session does not get them twice. A copy that the user has edited is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..pipelines.scrub import scrub
from ..runtime.errors import EntryInvalid, EntryNotFound, PathRefused
from ..runtime.layout import PROJECTS
from ..runtime.settings import Settings
from ..runtime.slug import free_slug, slugify
from ..sources.host_memory import claude_folders
from ..sources.instructions import InstructionFile, Unread, memory_files
from ..vault.automemory import INDEX_NAME, TOPIC_KIND
from ..vault.entry import Entry, Source, parse_text
from ..vault.fields import StoreValue
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import beginning_of, one_line
from .cursors import Cursors
from .device import this_device
from .evolving import free_archive_path
from .journal import Change, Journal, hash_of, text_of
from .topics import type_of

SCAN = "host-memory"
FOLDER = "claude-memory"
PROVENANCE = "imported_from"
DEVICE = "imported_on"
"""The device of the original: several devices may have notes of one name about one project."""
OUT_OF_REACH = (EntryInvalid, PathRefused)
"""Errors of reading one project's folder in the vault: a link that leads elsewhere, or a file that is too large."""

Copies = Mapping[str, Sequence[tuple[str, str]]]
"""Existing copies by their original: path and device."""
Result = Literal["imported", "updated", "unchanged", "removed", "yours", "no project", "refused"]


@dataclass(frozen=True)
class ImportOutcome:
    """The result for one of the host's files.

    "yours": the copy was edited or removed in the vault, and stays so. "refused": the copy is or would be outside the
    vault, or cannot be read; `why` says which.
    """

    source: str
    result: Result
    path: str | None = None
    why: str = ""


class HostMemory:
    """Copies Claude Code's folders of notes into one vault."""

    def __init__(self, settings: Settings, store: VaultStore, device: str | None = None) -> None:
        self._projects = settings.hosts.claude_config_dir / "projects"
        self._store = store
        self._journal = Journal(settings.state, store)
        self._cursors = Cursors(settings.state.state_db, SCAN)
        self._device = device or this_device()

    def bring_in(self, *, dry_run: bool = False) -> list[ImportOutcome]:
        """Update the copies. Repeating it, also after a crash, changes nothing that is in step.

        Raises VaultUnavailable.
        """
        self._store.require_vault()
        run = self._journal.new_run(SCAN)
        results = []
        seen = set()
        files = [*self._files()]
        # Before the lock, because others wait for it.
        followed = self._cursors.all()
        is_new = any(isinstance(f, InstructionFile) and f.project and str(f.path) not in followed for f in files)
        copies = self._copies() if is_new else {}
        with self._store.lock():
            if not dry_run:
                self._journal.recover()
            cursors = self._cursors.all()
            for file in files:
                seen.add(str(file.path))
                if not isinstance(file, InstructionFile):
                    continue
                try:
                    results.append(self._follow(file, cursors.get(str(file.path), {}), copies, run, dry_run))
                except OUT_OF_REACH as error:
                    results.append(ImportOutcome(str(file.path), "refused", why=str(error)))
            for source, cursor in sorted(cursors.items()):
                if source in seen or cursor.get("gone") or not _is_removed(Path(source), seen):
                    continue
                try:
                    results.append(self._take_away(source, cursor, run, dry_run))
                except OUT_OF_REACH as error:
                    results.append(ImportOutcome(source, "refused", why=str(error)))
        return results

    def _files(self) -> Iterator[InstructionFile | Unread]:
        for folder in claude_folders(self._projects):
            yield from memory_files(folder.path, folder.project)

    def _follow(
        self, file: InstructionFile, cursor: Mapping[str, Any], copies: Copies, run: str, dry_run: bool
    ) -> ImportOutcome:
        source = str(file.path)
        if not file.project:
            return ImportOutcome(source, "no project")
        if not cursor and (same := self._same_elsewhere(file, copies)):
            return self._leave_alone(file, same, "unchanged", dry_run)
        path = str(cursor.get("path") or "") or self._adopted(file, copies) or self._free_path(file)
        before = text_of(self._store, path)
        if cursor.get("digest") == file.digest:
            return ImportOutcome(source, "unchanged", path)
        # Without the cursor it is unknown whether the copy was edited: only an identical one counts as ours.
        if cursor and not _is_ours(before, cursor):
            is_free = cursor.get("gone") or (cursor.get("going") and before is None)
            if not (is_free or self._is_of_another_device(path, before)):
                return ImportOutcome(source, "yours", path)
            before, path = None, self._free_path(file)
        after = self._text(file, path, before)
        if not cursor and before not in (None, str(after)):
            return self._leave_alone(file, path, "yours", dry_run)
        if dry_run:
            return ImportOutcome(source, "updated" if before is not None else "imported", path)
        if after != before:
            what = "imported" if before is None else "updated"
            # No digest, so that the file is looked at again after a crash.
            copy = None if before is None else hash_of(before)
            intent = {"digest": "", "path": path, "copy": copy, "next": hash_of(after), "project": file.project}
            self._cursors.set(source, intent)
            self._journal.commit(
                [Change(path, before, after)], run=run, actor="import", what=f"{what} a note of claude"
            )
        self._cursors.set(
            source, {"digest": file.digest, "path": path, "copy": hash_of(after), "project": file.project}
        )
        return ImportOutcome(source, "updated" if before is not None else "imported", path)

    def _take_away(self, source: str, cursor: Mapping[str, Any], run: str, dry_run: bool) -> ImportOutcome:
        """Archive the copy of a file that the host deleted, unless the copy was edited."""
        path = str(cursor.get("path"))
        before = text_of(self._store, path)
        if before is None and (cursor.get("going") or cursor.get("copy") is None):
            # A killed run has archived it, or never made it.
            if not dry_run:
                self._cursors.set(source, {**cursor, "gone": True, "digest": ""})
            return ImportOutcome(source, "removed", path)
        if before is None or not _is_ours(before, cursor):
            return ImportOutcome(source, "yours", path)
        if dry_run:
            return ImportOutcome(source, "removed", path)
        self._cursors.set(source, {**cursor, "going": True, "digest": ""})
        archive = free_archive_path(self._store, path)
        text = self._store.render_edit(before, {"status": "archived"})
        changes = [Change(archive, None, text), Change(path, before, None)]
        self._journal.commit(changes, run=run, actor="import", what="claude has removed the note")
        self._cursors.set(source, {**cursor, "gone": True, "digest": ""})
        return ImportOutcome(source, "removed", archive)

    def _leave_alone(self, file: InstructionFile, path: str, result: Result, dry_run: bool) -> ImportOutcome:
        """Leave the copy as it is and record that, so that no run looks at it again."""
        if not dry_run:
            digest = file.digest if result == "unchanged" else ""
            # No text has that hash, so the copy will not count as ours.
            self._cursors.set(str(file.path), {"digest": digest, "path": path, "copy": "", "project": file.project})
        return ImportOutcome(str(file.path), result, path)

    def _copies(self) -> Copies:
        found: dict[str, list[tuple[str, str]]] = {}
        for path in self._store.walk():
            if f"/{FOLDER}/" in path and path.startswith(f"{PROJECTS}/"):
                with suppress(EntryNotFound, *OUT_OF_REACH):
                    extra = self._store.read(path).extra
                    found.setdefault(str(extra.get(PROVENANCE)), []).append((path, str(extra.get(DEVICE) or "")))
        return found

    def _adopted(self, file: InstructionFile, copies: Copies) -> str | None:
        """Return this device's copy, made before state.db was lost."""
        return next((path for path, device in copies.get(_origin(file), ()) if device == self._device), None)

    def _same_elsewhere(self, file: InstructionFile, copies: Copies) -> str | None:
        """Return another device's identical copy if this device has none."""
        if self._adopted(file, copies):
            return None
        for path, _ in copies.get(_origin(file), ()):
            held = text_of(self._store, path)
            if held is not None and _body(path, held) == _body(path, self._text(file, path, None)):
                return path
        return None

    def _is_of_another_device(self, path: str, before: str | None) -> bool:
        if before is None:
            return False
        device = parse_text(path, before).extra.get(DEVICE)
        return device is not None and device != self._device

    def _free_path(self, file: InstructionFile) -> str:
        folder = f"{PROJECTS}/{file.project}/{FOLDER}"
        slug = free_slug(slugify(file.path.stem), lambda slug: self._store.exists(f"{folder}/{slug}.md"))
        return f"{folder}/{slug}.md"

    def _text(self, file: InstructionFile, path: str, before: str | None) -> Scrubbed:
        entry = parse_text(file.path.name, file.text)
        kind = type_of(entry)
        description = _short_text(entry.extra.get("description"))
        title = scrub(description or _short_text(entry.extra.get("name")) or f"Notes of Claude Code on {file.project}")
        body = scrub(entry.body.strip() + "\n")
        fields: dict[str, StoreValue] = {
            "kind": TOPIC_KIND,
            "tags": [kind] if kind else None,
            "source": [Source("claude", _session(entry), (file.path.name,))],
            DEVICE: Scrubbed.trusted(self._device, reason="a machine's name, which the user's settings note may hold"),
            PROVENANCE: Scrubbed.trusted(_origin(file), reason="scrubbed where it is made"),
        }
        if before is not None:
            heading = Scrubbed.trusted(f"# {title}", reason="scrubbed above")
            return self._store.render_edit(before, fields, Scrubbed.joined([heading, body]))
        group = f"{PROJECTS}/{file.project}"
        return self._store.compose(path, {**fields, "group": group, "project": file.project}, title, body)


def _body(path: str, text: str) -> str:
    return parse_text(path, text).body


def _is_ours(before: str | None, cursor: Mapping[str, Any]) -> bool:
    """Whether the copy is as the program left it, or as a killed run was about to leave it."""
    found = None if before is None else hash_of(before)
    copy = cursor.get("copy")
    return found in (copy, cursor.get("next", copy))


def _is_removed(source: Path, seen: Collection[str]) -> bool:
    """Whether the host's file is certainly deleted, not only unreachable (renamed or unmounted folder)."""
    try:
        if source.name not in os.listdir(source.parent):
            return True
    except OSError:
        return False
    # The index counts as a note only if it is the only file.
    return source.name == INDEX_NAME and any(Path(other).parent == source.parent for other in seen)


def _origin(file: InstructionFile) -> str:
    """Return the file's folder name and name; the folder's name holds the path of the user's home."""
    return str(scrub(f"claude/{file.project}/{file.path.name}"))


def _session(entry: Entry) -> str:
    metadata = entry.extra.get("metadata")
    nested = metadata.get("originSessionId") if isinstance(metadata, dict) else None
    return _short_text(nested or entry.extra.get("originSessionId"))[:100]


def _short_text(value: object) -> str:
    return beginning_of(one_line(value), 300) if isinstance(value, str) else ""
