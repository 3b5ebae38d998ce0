"""Remove links to deleted ideas from the research notes of other ideas.

Obsidian would create an empty note for a broken link, and research is seldom repeated. Only a recorded deletion counts:
a missing idea may be on its way from another device.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ...pipelines.research import RELATED_MEMORIES, WRITTEN_HASH, hash_as_written, is_as_written, struck, without_found
from ...runtime.errors import EditConflict, EntryInvalid, EntryNotFound, PathRefused
from ...runtime.layout import ARCHIVE, DEFAULT_GROUP, PROJECTS
from ...vault.entry import RESEARCH_KIND
from ...vault.pending import IDEA_NOTE, INCUBATOR_FOLDER
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..journal import hash_of, text_of
from .ledger import idea_folder, link_of

log = logging.getLogger(__name__)


def unlink_deleted(store: VaultStore, folders: Iterable[str] | None = None) -> int:
    """Remove links to deleted ideas from the notes in these folders, by default those of all ideas and projects;
    return how many notes changed. All other bytes of the notes stay. Raises VaultUnavailable."""
    store.require_vault()
    gone = frozenset(_deleted_links(store))
    if not gone:
        return 0
    places = [store.vault / each for each in folders] if folders is not None else _folders(store)
    notes = sorted(path for place in places for path in place.glob(f"{RELATED_MEMORIES}*.md"))
    return sum(_unlink(store, path.relative_to(store.vault).as_posix(), gone) for path in notes)


def _folders(store: VaultStore) -> Iterator[Path]:
    for place in (INCUBATOR_FOLDER, PROJECTS):
        yield from (note.parent for note in (store.vault / place).glob(f"*/{IDEA_NOTE}"))


def _deleted_links(store: VaultStore) -> Iterator[str]:
    """Return the link targets of deleted ideas that have not come back, by themselves or as a namesake."""
    for note in (store.vault / DEFAULT_GROUP / ARCHIVE).glob("idea-*.md"):
        with suppress(EntryNotFound, EntryInvalid, PathRefused):
            entry = store.read(note.relative_to(store.vault).as_posix())
            if entry.status == "dismissed" and (slug := entry.extra.get("idea")):
                path = f"{idea_folder(str(slug))}/{IDEA_NOTE}"
                if not store.exists(path):
                    yield link_of(store, path).removesuffix(".md")


def _unlink(store: VaultStore, path: str, gone: frozenset[str]) -> bool:
    reason = "it was in the vault, less a link"
    with store.lock(), suppress(EntryNotFound, EntryInvalid, PathRefused, EditConflict):
        entry = store.read(path)
        if entry.kind != RESEARCH_KIND:
            return False
        if is_as_written(entry) and (body := without_found(entry.body, gone)) != entry.body:
            fields = {WRITTEN_HASH: Scrubbed.trusted(hash_as_written(body), reason=reason), "updated": entry.updated}
            store.update(path, entry.content_hash, fields=fields, body=Scrubbed.trusted(body, reason=reason))
            return True
        before = text_of(store, path) or ""
        after = struck(before, gone)
        if after != before:
            store.write_text(path, Scrubbed.trusted(after, reason=reason), hash_of(before), keep_line_ends=True)
            return True
    return False
