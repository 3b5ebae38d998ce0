"""Copy the host's own notes into topics of the vault, and keep the copies in step.

Claude Code writes and loads these files by itself, so they are only read. The copies are kept apart from the project's
own notes and are not indexed, so that a session does not get them twice. A copy that the user has edited is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..pipelines.research import WRITTEN_HASH, hash_as_written, is_as_written
from ..pipelines.scrub import scrub
from ..runtime.errors import EntryInvalid, EntryNotFound, PathRefused
from ..runtime.layout import PROJECTS
from ..runtime.settings import Settings
from ..runtime.slug import free_slug, slugify
from ..sources.instructions import InstructionFile, host_files
from ..vault.automemory import INDEX_NAME, TOPIC_KIND
from ..vault.entry import Entry, Source, parse_text, topic_type
from ..vault.fields import StoreValue
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import beginning_of, one_line
from .cursors import Cursors
from .device import this_device
from .evolving import free_archive_path
from .journal import Change, Journal, text_of

SCAN = "host-memory"
FOLDER = "claude-memory"
PROVENANCE = "imported_from"
DEVICE = "imported_on"
"""The device of the original: several devices may have notes of one name about one project."""
OUT_OF_REACH = (EntryInvalid, PathRefused)
"""Errors of reading one project's folder in the vault: a link that leads elsewhere, or a file that is too large."""

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
    """Copies Claude Code's folders of notes into one vault.

    A copy says in its properties which file of which device it follows, and has a hash of the text as written, by which
    an edited one is recognised. The cursor (state.db, scan `host-memory`) has the digest of the file when it was last
    followed, so that a copy that was deleted or taken back does not return; `gone`: there is no copy of this device.
    """

    def __init__(self, settings: Settings, store: VaultStore, device: str | None = None) -> None:
        self._projects = settings.hosts.claude_config_dir / "projects"
        self._store = store
        self._journal = Journal(settings.state, store)
        self._cursors = Cursors(settings.state.state_db, SCAN)
        self._device = device or this_device()

    def bring_in(self) -> list[ImportOutcome]:
        """Update the copies. Repeating it, also after a crash, changes nothing that is in step.

        Raises VaultUnavailable.
        """
        self._store.require_vault()
        run = self._journal.new_run(SCAN)
        files = list(host_files(self._projects))
        seen = {str(file.path) for file in files}
        results = []
        with self._store.lock():
            self._journal.recover()
            cursors = self._cursors.all()
            for file in files:
                if isinstance(file, InstructionFile):
                    try:
                        results.append(self._follow(file, cursors.get(str(file.path)), run))
                    except OUT_OF_REACH as error:
                        results.append(ImportOutcome(str(file.path), "refused", why=str(error)))
            for source, cursor in sorted(cursors.items()):
                if source not in seen and _is_removed(Path(source), seen):
                    try:
                        results += self._take_away(source, cursor, run)
                    except OUT_OF_REACH as error:
                        results.append(ImportOutcome(source, "refused", why=str(error)))
        return results

    def _follow(self, file: InstructionFile, cursor: Mapping[str, Any] | None, run: str) -> ImportOutcome:
        source = str(file.path)
        if not file.project:
            return ImportOutcome(source, "no project")
        if cursor is not None and cursor["digest"] == file.digest:
            return ImportOutcome(source, "unchanged", cursor["path"])
        copies = list(self._copies(file))
        own = next((copy for copy in copies if copy.extra.get(DEVICE) == self._device), None)
        if own is None and cursor is not None and not cursor.get("gone"):  # The user has deleted or moved it.
            return ImportOutcome(source, "yours", cursor["path"])
        if own is not None and not is_as_written(own):
            self._put_down(file, "", own.path)
            return ImportOutcome(source, "yours", own.path)
        path = own.path if own is not None else self._free_path(file)
        title, body = _texts(file)
        wanted = hash_as_written(_written(title, body))
        same = next((copy for copy in copies if hash_as_written(copy.body) == wanted), None)
        if own is None and same is not None:
            self._put_down(file, file.digest, "", gone=True)
            return ImportOutcome(source, "unchanged", same.path)
        after = self._text(file, path, own, title, body)
        if own is None or after != own.text:
            # Without a digest, so that it is looked at again after a crash.
            self._put_down(file, "", path, gone=own is None)
            what = "imported" if own is None else "updated"
            change = Change(path, None if own is None else own.text, after)
            self._journal.commit([change], run=run, actor="import", what=f"{what} a note of claude")
        self._put_down(file, file.digest, path)
        return ImportOutcome(source, "imported" if own is None else "updated", path)

    def _take_away(self, source: str, cursor: Mapping[str, Any], run: str) -> Iterator[ImportOutcome]:
        """Archive the copy of a file that the host deleted, unless the copy was edited or deleted."""
        path = cursor["path"]
        before = text_of(self._store, path) if path else None
        if before is None and cursor.get("gone"):
            self._cursors.forget(source)
            return
        if before is not None and not is_as_written(parse_text(path, before)):
            yield ImportOutcome(source, "yours", path)
            return
        self._cursors.set(source, {"digest": "", "path": path, "gone": True})
        if before is not None:
            archive = free_archive_path(self._store, path)
            text = self._store.render_edit(before, {"status": "archived"})
            changes = [Change(archive, None, text), Change(path, before, None)]
            self._journal.commit(changes, run=run, actor="import", what="claude has removed the note")
            path = archive
        self._cursors.forget(source)  # So that a copy that an undo brings back is not taken away again.
        yield ImportOutcome(source, "removed", path)

    def _put_down(self, file: InstructionFile, digest: str, path: str, *, gone: bool = False) -> None:
        self._cursors.set(str(file.path), {"digest": digest, "path": path, **({"gone": True} if gone else {})})

    def _copies(self, file: InstructionFile) -> Iterator[Entry]:
        """Yield the copies of the file, also those of other devices."""
        folder = f"{PROJECTS}/{file.project}/{FOLDER}"
        for name in sorted(path.name for path in (self._store.vault / folder).glob("*.md")):
            with suppress(EntryNotFound):
                entry = self._store.read(f"{folder}/{name}")
                if entry.extra.get(PROVENANCE) == _origin(file):
                    yield entry

    def _free_path(self, file: InstructionFile) -> str:
        folder = f"{PROJECTS}/{file.project}/{FOLDER}"
        slug = free_slug(slugify(file.path.stem), lambda slug: self._store.exists(f"{folder}/{slug}.md"))
        return f"{folder}/{slug}.md"

    def _text(self, file: InstructionFile, path: str, own: Entry | None, title: Scrubbed, body: Scrubbed) -> Scrubbed:
        entry = parse_text(file.path.name, file.text)
        kind = topic_type(entry.extra)
        fields: dict[str, StoreValue] = {
            "kind": TOPIC_KIND,
            "tags": [kind] if kind else None,
            "source": [Source("claude", _session(entry), (file.path.name,))],
            DEVICE: Scrubbed.trusted(self._device, reason="a machine's name, which the user's settings note may hold"),
            PROVENANCE: Scrubbed.trusted(_origin(file), reason="scrubbed where it is made"),
            WRITTEN_HASH: Scrubbed.trusted(hash_as_written(_written(title, body)), reason="a hash"),
        }
        if own is not None:
            return self._store.render_edit(
                own.text, fields, Scrubbed.trusted(_written(title, body), reason="both are scrubbed")
            )
        group = f"{PROJECTS}/{file.project}"
        return self._store.compose(path, {**fields, "group": group, "project": file.project}, title, body)


def _texts(file: InstructionFile) -> tuple[Scrubbed, Scrubbed]:
    """Return the heading and the text of a copy."""
    entry = parse_text(file.path.name, file.text)
    description = _short_text(entry.extra.get("description"))
    title = scrub(description or _short_text(entry.extra.get("name")) or f"Notes of Claude Code on {file.project}")
    return title, scrub(entry.body.strip() + "\n")


def _written(title: Scrubbed, body: Scrubbed) -> str:
    """Return the body of a copy."""
    return f"# {' '.join(title.split())}\n\n{body}"


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
