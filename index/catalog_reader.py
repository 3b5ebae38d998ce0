"""Read-only queries over the catalog of index.db: entries, their paths, and their chunks' texts.

One reader is used by one thread at a time. The queries of a recall are in `search_reader`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ..runtime.days import effective_day
from ..runtime.layout import INBOX
from ..runtime.paths import file_identity
from ..vault.active import is_entry_place
from ..vault.entry import SKILL_KIND
from . import database, schema
from .ranking import EntryFacts
from .scope import Scope

_PROGRESS_STEPS = 2_000
"""SQLite's virtual-machine steps between two looks at the clock (well below a millisecond)."""


@dataclass(frozen=True)
class EntryRow:
    """The columns of entry_meta that a hit is made of."""

    rowid: int
    path: str
    slug: str
    title: str
    kind: str | None
    status: str | None
    project: str | None
    created: str | None
    updated: str | None
    occurrences: int
    content_hash: str
    mtime_ns: int
    size: int
    session: str | None
    surfaced_at: str | None
    confidence: str | None

    def facts(self, project: str = "") -> EntryFacts:
        """Return what ranking uses of this entry. `project`: the question's project in lower case, or ''."""
        return EntryFacts(
            path=self.path,
            kind=self.kind or "",
            confidence=self.confidence or "",
            updated=effective_day(self.surfaced_at, self.created, self.updated),
            occurrences=self.occurrences,
            is_local=bool(project) and (self.project or "").lower() == project,
        )


class StoredChunk(NamedTuple):
    """A chunk's place in its entry, from 0, and its text."""

    ordinal: int
    text: str


class CatalogReader:
    """One read-only connection. Raises IndexUnavailable when the index cannot be used."""

    def __init__(self, path: Path, *, vectors: bool = False) -> None:
        """`vectors`: load sqlite-vec too, where it is installed."""
        self.path = path
        self.identity = file_identity(path)
        self._connection = database.open_reader(path, vectors=vectors)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries inside see one state of the index. Raises IndexDamaged, also if a part of the index is
        missing."""
        with database.translate_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def interrupt_at(self, deadline: float | None) -> Iterator[None]:
        """Let queries inside raise apsw.InterruptError once `deadline` (time.monotonic) has passed."""
        if deadline is None:
            yield
            return
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, _PROGRESS_STEPS)
        try:
            yield
        finally:
            self._connection.set_progress_handler(None)

    # Entries

    def entries_by_rowid(self, rowids: Iterable[int]) -> dict[int, EntryRow]:
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE m.rowid IN {VALUES_OF_JSON}"
        rows = self._connection.execute(sql, (json.dumps(sorted(set(rowids))),))
        return {row[0]: EntryRow(*row) for row in rows}

    def list_entries(self, scope: Scope, offset: int, limit: int, *, in_place: bool = False) -> list[EntryRow]:
        """Return `limit` entries of the scope with a title or text, after the first `offset`, last updated first.

        `in_place`: only those outside of special folders, where active entries are.
        """
        condition, parameters = _listable(scope, in_place=in_place)
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE {condition} {_NEWEST_FIRST} LIMIT ? OFFSET ?"
        return [EntryRow(*row) for row in self._connection.execute(sql, (*parameters, limit, offset))]

    def count_entries(self, scope: Scope, *, in_place: bool = False) -> int:
        """Count the entries of `list_entries`."""
        condition, parameters = _listable(scope, in_place=in_place)
        return int(self._connection.execute(f"SELECT count(*) FROM entry_meta m WHERE {condition}", parameters).get)

    # Columns

    def distinct_values(self, column: Literal["kind", "project"]) -> list[str]:
        """Return the values in this column, sorted."""
        sql = f"SELECT DISTINCT {column} FROM entry_meta WHERE {column} > '' ORDER BY {column}"
        return [row[0] for row in self._connection.execute(sql)]

    def count_rivals(self, project: str | None, *, skills: bool | None, folders: Collection[str] = ("",)) -> int:
        """Count the entries in these special folders ('' for none) that belong to no project or to `project` (None: to
        any)."""
        conditions, values = [f"special IN {VALUES_OF_JSON}"], [json.dumps(sorted(folders))]
        if project is not None:
            conditions.append("COALESCE(project, '') COLLATE NOCASE IN ('', ?)")
            values.append(project)
        if skills is not None:
            conditions.append(f"COALESCE(kind, '') {'=' if skills else '<>'} '{SKILL_KIND}'")
        return int(
            self._connection.execute(f"SELECT count(*) FROM entry_meta WHERE {' AND '.join(conditions)}", values).get
        )

    # Paths

    def all_paths(self) -> list[str]:
        """Return the paths of all indexed files."""
        return [row[0] for row in self._connection.execute("SELECT path FROM entry_meta")]

    def set_aside(self) -> dict[str, str]:
        """Return the status of each note that is in a place of entries in use but is not in use, by path.

        The status is '' for a note that no status would make an entry.
        """
        is_none = f"{schema.IS_EXPLICIT_KIND} OR NOT {schema.HAS_CONTENT}"
        sql = (
            f"SELECT m.path, CASE WHEN {is_none} THEN '' ELSE {schema.STATUS} END FROM entry_meta m "
            f"WHERE NOT ({schema.IN_USE}) AND {schema.IN_ENTRY_PLACE}"
        )
        return {row[0]: row[1] for row in self._connection.execute(sql) if is_entry_place(row[0])}

    def always_load_paths(self) -> list[str]:
        """Return the paths of always-load entries in use, of every project and of none."""
        sql = f"SELECT m.path FROM entry_meta m WHERE m.always_load = 1 AND {schema.IN_USE} ORDER BY m.path"
        return [row[0] for row in self._connection.execute(sql)]

    def stamps_of_actions(self, cures: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return time of change, in nanoseconds, and size in bytes of the files of the entries in use, and of the notes
        of the kinds `cures`: active or resolved ones in places of entries in use, and those in the inbox."""
        sql = (
            f"SELECT m.path, m.mtime_ns, m.size FROM entry_meta m WHERE {schema.IN_USE} OR m.kind IN {VALUES_OF_JSON} "
            f"AND ({schema.IN_ENTRY_PLACE} AND {schema.STATUS} IN ('active', 'resolved')"
            f" OR m.special = '{INBOX}' AND {schema.STATUS} = 'inbox')"
        )
        rows = self._connection.execute(sql, (json.dumps(list(cures)),))
        return {path: (mtime_ns, size) for path, mtime_ns, size in rows}

    # Chunks

    def chunks_by_rowid(self, rowids: Sequence[int]) -> dict[int, StoredChunk]:
        sql = f"SELECT rowid, ordinal, text FROM chunk WHERE rowid IN {VALUES_OF_JSON}"
        rows = self._connection.execute(sql, (json.dumps(list(rowids)),))
        return {row[0]: StoredChunk(row[1], row[2]) for row in rows}

    def first_chunks(self, entries: Sequence[int]) -> dict[int, StoredChunk]:
        """Return the first chunk of each entry, by the entry's rowid."""
        sql = f"SELECT entry_rowid, ordinal, text FROM chunk WHERE ordinal = 0 AND entry_rowid IN {VALUES_OF_JSON}"
        rows = self._connection.execute(sql, (json.dumps(list(entries)),))
        return {row[0]: StoredChunk(row[1], row[2]) for row in rows}


def _listable(scope: Scope, *, in_place: bool) -> tuple[str, list[str]]:
    condition, parameters = scope.sql()
    where = f"{condition} AND {schema.HAS_CONTENT}"
    return f"{where} AND {schema.IN_ENTRY_PLACE}" if in_place else where, parameters


VALUES_OF_JSON = "(SELECT value FROM json_each(?))"
"""A parameter that is a JSON array, as the right side of IN."""
_ENTRY_COLUMNS = ", ".join(f"m.{name}" for name in EntryRow.__dataclass_fields__)
_NEWEST_FIRST = "ORDER BY COALESCE(NULLIF(m.updated, ''), m.created, '') DESC, m.path"
