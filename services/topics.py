"""The agent's notes about a project: topic files and their index, changed together.

A topic and its index line are one act of the journal. After a kill, the next command, reflection or start of the worker
completes it; `rebuild-index` adds a line for a file that came by hand or by sync.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..pipelines.scrub import Policy, scrub
from ..pipelines.topic_index import line_for, over_the_limit, rebuilt, with_line, without_lines
from ..runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound, PathRefused, UsageError
from ..runtime.layout import PROJECTS, RESERVED_NAMES, is_conflict_copy
from ..runtime.paths import resolve_inside
from ..runtime.slug import validate_name
from ..vault.automemory import FOLDER, INDEX_NAME, TYPES, is_topic_name
from ..vault.entry import AGENT_SOURCE, Entry, Source, hash_of, parse_text, topic_type
from ..vault.fields import StoreValue
from ..vault.header import CONFLICT
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import one_line
from .entry_names import refuse_secrets
from .evolving import free_archive_path
from .journal import Actor, Change, Journal, text_of

MAX_BODY_CHARACTERS = 100_000
MAX_DESCRIPTION_CHARACTERS = 300
SHOWN_HASH_CHARACTERS = 12
NO_TOPIC = (EntryInvalid, EntryNotFound, PathRefused)
"""Errors of reading one file: it is a folder, a link that leaves the vault, too large, or removed meanwhile."""
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True)
class Topic:
    """A topic file. `type` is '' if the file names none of TYPES."""

    slug: str
    path: str
    name: str
    description: str
    type: str
    updated: str
    body: str
    hash: str
    """Start of the content hash, as `replace` expects it."""


class Topics:
    """The notes of one project. All methods raise PathRefused and VaultUnavailable.

    `actor` is the journal's actor; `agent` for what a model writes by itself, which `memory undo` takes back.
    """

    def __init__(
        self,
        store: VaultStore,
        journal: Journal,
        project: str,
        *,
        actor: Actor = "topics",
    ) -> None:
        self._store = store
        self._journal = journal
        self._actor = actor
        self.project = validate_name("slug", project)
        self.folder = f"{PROJECTS}/{self.project}/{FOLDER}"
        self.index_path = f"{self.folder}/{INDEX_NAME}"

    def all(self) -> list[Topic]:
        """Return all topics by slug; `VaultStore.passed_over` says why others cannot be read or called so."""
        self._journal.recover()
        topics = []
        for slug in self._stems():
            if not _SLUG.fullmatch(slug):
                path = f"{self.folder}/{slug}.md"
                self._store.passed_over[path] = f"{path}: its name can't be used as a slug: rename it"
                continue
            try:
                topics.append(self._topic(slug))
            except EntryNotFound:
                continue
            except NO_TOPIC as error:
                self._store.passed_over[f"{self.folder}/{slug}.md"] = str(error)
        return topics

    def read(self, slug: str) -> Topic:
        """Return one topic. Raises EntryNotFound, EntryInvalid for one with git's conflict marks."""
        self._journal.recover()
        if _checked(slug) not in self._slugs():
            raise self._not_found(slug)
        self._refuse_merge(slug, self._store.read(f"{self.folder}/{slug}.md"))
        return self._topic(slug)

    def write(
        self,
        slug: str,
        body: str,
        *,
        type_: str | None = None,
        description: str | None = None,
        name: str | None = None,
        replace: str | None = None,
        append: bool = False,
    ) -> Topic:
        """Create a topic with its index line, or change one that was read before.

        `replace` is the hash that `read` returned; `append` adds to the current text. Without either, the topic must
        be new, so that no writer overwrites what it has not seen. Raises EntryExists, EntryNotFound, EditConflict,
        EntryInvalid, UsageError.
        """
        _checked(slug)
        if type_ is not None and type_ not in TYPES:
            raise UsageError(f"unknown type {type_!r}: use one of {', '.join(TYPES)}")
        if not body.strip():
            raise UsageError("a topic needs a text")
        fields: dict[str, StoreValue] = {
            key: _line(text, key) for key, text in (("name", name), ("description", description)) if text is not None
        }
        with self._journal.locked():
            path = f"{self.folder}/{slug}.md"
            before = text_of(self._store, path)
            if before is None:
                if slug.lower() in RESERVED_NAMES:
                    raise UsageError(f"{slug!r} is a name that Windows reserves: choose another")
                self._refuse_twin(slug)
                if replace is not None:
                    raise EntryNotFound(f"{self.project} has no topic {slug}: write it without `replace`")
                after = self._new(path, slug, body, type_, fields)
            else:
                text = self._text(slug, before, body, replace, append)
                if type_ is not None:
                    metadata = parse_text(slug, before).extra.get("metadata")
                    kept = metadata if isinstance(metadata, dict) else {}
                    fields["metadata"] = {**_scrubbed_values(kept), "type": scrub(type_)}
                after = self._store.render_edit(before, fields, text)
            entry = parse_text(path, after)
            index = self._index_text()
            line = line_for(_title(entry, slug), slug, _text(entry.extra.get("description")))
            new_index = self._trusted(with_line(index or "", slug, line))
            changes = [Change(path, before, after)] if after != before else []
            if new_index != index:
                changes.append(Change(self.index_path, index, new_index))
            if changes:
                self._commit(changes, f"wrote topic {slug}")
            return self._topic(slug)

    def remove(self, slug: str) -> str:
        """Archive a topic, remove its index line, and return the archive path. Raises EntryNotFound."""
        _checked(slug)
        with self._journal.locked():
            path = f"{self.folder}/{slug}.md"
            before = text_of(self._store, path)
            if before is None:
                raise self._not_found(slug)
            archive = free_archive_path(self._store, path)
            changes = [Change(archive, None, self._store.render_edit(before, {"status": "archived"}))]
            index = self._index_text()
            if index is not None and (without := without_lines(index, {slug})) != index:
                changes.append(self._index_change(index, without))
            self._commit([*changes, Change(path, before, None)], f"removed topic {slug}")
            return archive

    def over_the_limit(self) -> str:
        """Return a text about the part of the index that no session loads; '' if all of it is loaded."""
        return over_the_limit(self._index_text() or "")

    def rebuild_index(self) -> bool:
        """Give each topic one line and remove dead lines; return whether anything changed."""
        with self._journal.locked():
            index = self._index_text()
            lines, unread = {}, set()
            for slug in self._slugs():
                try:
                    topic = self._topic(slug)
                    lines[slug] = line_for(topic.name, slug, topic.description)
                except NO_TOPIC:
                    if Path(self._store.vault, self.folder, f"{slug}.md").is_file():
                        unread.add(slug)
            after = rebuilt(index or "", lines, unread)
            change = self._index_change(index, after)
            if change.before == change.after:
                return False
            self._commit([change], "rebuilt the index")
            return True

    # Steps

    def _not_found(self, slug: str) -> EntryNotFound:
        return EntryNotFound(f"{self.project} has no topic {slug}: list the topics to see what there is")

    def _new(self, path: str, slug: str, body: str, type_: str | None, fields: Mapping[str, StoreValue]) -> Scrubbed:
        if type_ is None or not fields.get("description"):
            raise UsageError(f"a new topic needs `type` ({', '.join(TYPES)}) and `description`")
        fields = {
            "name": fields.get("name") or _line(slug, "name"),
            "description": fields["description"],
            "metadata": {"type": scrub(type_)},
            "source": Source(AGENT_SOURCE),
            # The format of Claude Code, without the fields that it does not have.
            **dict.fromkeys(("status", "slug", "always_load")),
        }
        return self._store.compose(path, fields, None, _body(body))

    def _text(self, slug: str, before: str, body: str, replace: str | None, append: bool) -> Scrubbed:
        """Return the new text of a topic that is there. Raises EntryExists, EditConflict, EntryInvalid."""
        entry = parse_text(f"{self.folder}/{slug}.md", before)
        self._refuse_merge(slug, entry)
        if append:
            text = Scrubbed.joined([Scrubbed.trusted(entry.body, reason="it was in the vault"), _body(body)])
            if len(text) > MAX_BODY_CHARACTERS:
                raise EntryInvalid(
                    f"the topic would be longer than {MAX_BODY_CHARACTERS} characters: start another one"
                )
            return text
        if replace is None:
            raise EntryExists(
                f"there is a topic {slug} already: read it, then use `replace` with its hash to put a new text "
                f"in its place, or `append` to add to it"
            )
        if len(replace) < SHOWN_HASH_CHARACTERS or not hash_of(before).startswith(replace):
            raise EditConflict(f"topic {slug} is not what you read: read it again; nothing was written")
        return _body(body)

    def _refuse_merge(self, slug: str, entry: Entry) -> None:
        if entry.status == CONFLICT:
            where = f"{self.folder}/{slug}.md"
            raise EntryInvalid(
                f"topic {slug} has two versions between git's conflict marks: keep one of them in {where}"
            )

    def _refuse_twin(self, slug: str) -> None:
        """Refuse another spelling of a topic: on a case-insensitive disk it is the same file."""
        twin = next((known for known in self._slugs() if known.lower() == slug.lower()), None)
        if twin is not None:
            raise EntryExists(f"there is a topic {twin}, which some disks can't tell from {slug}: use that name")

    def _commit(self, changes: list[Change], what: str) -> None:
        self._journal.commit(changes, run=self._journal.new_run("topics"), actor=self._actor, what=what)

    def _index_change(self, before: str | None, after: str) -> Change:
        """Return the change of the index; an empty index is removed."""
        return Change(self.index_path, before, self._trusted(after) if after.strip() else None)

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(resolve_inside(self._store.vault, self.folder)))
        except (FileNotFoundError, NotADirectoryError):
            self._store.require_vault()
            return []

    def _stems(self) -> list[str]:
        """Return the names of the topic files without `.md`; not all can be slugs."""
        return [
            name.removesuffix(".md") for name in self._names() if is_topic_name(name) and not is_conflict_copy(name)
        ]

    def _slugs(self) -> list[str]:
        return [stem for stem in self._stems() if _SLUG.fullmatch(stem)]

    def _index_text(self) -> str | None:
        return text_of(self._store, self.index_path)

    def _topic(self, slug: str) -> Topic:
        path = f"{self.folder}/{slug}.md"
        entry = self._store.read(path)
        return Topic(
            slug=slug,
            path=path,
            name=_title(entry, slug),
            description=_text(entry.extra.get("description")),
            type=topic_type(entry.extra),
            updated=entry.updated or entry.created or "",
            body=entry.body,
            hash=entry.content_hash[:SHOWN_HASH_CHARACTERS],
        )

    @staticmethod
    def _trusted(text: str) -> Scrubbed:
        return Scrubbed.trusted(text, reason="lines that were in the vault, and fields that were scrubbed")


def _checked(slug: str) -> str:
    if _SLUG.fullmatch(slug) is None or slug.lower() == INDEX_NAME.lower().removesuffix(".md"):
        raise UsageError(f"{slug[:80]!r} is not a topic name: use letters, digits, hyphens and underscores")
    refuse_secrets(slug)
    return slug


def _line(text: str, what: str) -> Scrubbed:
    line = one_line(text)
    if len(line) > MAX_DESCRIPTION_CHARACTERS:
        raise UsageError(
            f"the {what} is longer than {MAX_DESCRIPTION_CHARACTERS} characters: it is one line of the index"
        )
    return scrub(line, Policy.FULL)


def _body(text: str) -> Scrubbed:
    if len(text) > MAX_BODY_CHARACTERS:
        raise UsageError(f"the text is longer than {MAX_BODY_CHARACTERS} characters: split it into several topics")
    return scrub(text.strip() + "\n", Policy.FULL)


def _title(entry: Entry, slug: str) -> str:
    """Return the title; newer clients put the slug in `name`, and then its words are the title."""
    name = _text(entry.extra.get("name"))
    if name and name != slug:
        return name
    words = re.sub(r"[-_]+", " ", slug).strip()
    return words[:1].upper() + words[1:]


def _scrubbed_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: Scrubbed.trusted(value, reason="it was in the vault") if isinstance(value, str) else value
        for key, value in metadata.items()
    }


def _text(value: object) -> str:
    return one_line(value) if isinstance(value, str) else ""
