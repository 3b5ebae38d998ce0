"""IndexStore: all writes to index.db, and the queries that go with them.

Each public method is one transaction. Texts without a vector are found by a join, not by a queue, so that none can be
lost or embedded twice.
"""

from __future__ import annotations

import functools
import hashlib
import json
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from ..runtime.atomic_file import set_aside
from ..runtime.closing import Closing
from ..runtime.errors import IndexUnavailable
from ..runtime.index_terms import index_text
from ..runtime.paths import file_identity
from ..vault.entry import DISMISSED, REJECTED, Entry
from ..vault.project import group_of_note
from . import database, schema
from .chunking import ChunkText, chunk_entry
from .database import IndexDamaged

HIDDEN_FOLDERS = frozenset({"_inbox", "_review", "_archive", "_meta", "_skill-watchlist", "_dream-staging"})
"""Special folders whose entries are shown only when the folder is named."""

ORPHAN_SECONDS = 7 * 86_400
"""How long a vector is kept after the last chunk with its text was removed."""

FORGOTTEN_STATUSES = frozenset({DISMISSED, REJECTED})
"""Statuses of entries that the user dismissed or rejected. The index holds their paths and none of their words."""

_META = tuple(name for name, _ in schema.ENTRY_META_COLUMNS)
_UPSERT_META = (
    f"INSERT INTO entry_meta ({', '.join(_META)}) VALUES ({', '.join('?' * len(_META))}) "
    f"ON CONFLICT (path) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _META if c != 'path')} "
    "RETURNING rowid"
)


_INDEXED_AT = "CASE WHEN derivation < ? THEN 0.0 ELSE indexed_at END"


@dataclass(frozen=True)
class FileState:
    """The state of a file when it was indexed, to see whether it changed."""

    mtime_ns: int
    size: int
    content_hash: str
    indexed_at: float
    """0: to be indexed again."""


@dataclass(frozen=True)
class PendingText:
    """A text without a vector."""

    text_hash: str
    text: str


@dataclass(frozen=True)
class VectorModel:
    """A model with vectors in the index; `embedded` counts them."""

    name: str
    dimension: int
    embedded: int


@dataclass(frozen=True)
class IndexStats:
    """Counts for `memory health`; `pending` is None where no model has ever embedded anything."""

    entries: int
    chunks: int
    embedded: int
    pending: int | None
    models: tuple[str, ...]
    size_bytes: int
    last_indexed: float | None


def special_folder(path: str) -> str:
    """Return the underscore folder that decides whether the entry at `path` may be shown, else ''."""
    folders = [part for part in path.split("/")[:-1] if part.startswith("_")]
    return next((f for f in folders if f in HIDDEN_FOLDERS), folders[0] if folders else "")


def row_of(entry: Entry) -> dict[str, Any]:
    """Return the row of entry_meta that the index would hold for an entry."""
    return {
        "path": entry.path,
        "kind": entry.kind,
        "status": entry.status,
        "slug": entry.slug,
        "title": entry.title,
        "project": entry.project,
        "group_name": group_of_note(entry.path, entry.group or "") or None,
        "created": entry.created,
        "updated": entry.updated,
        "tags": entry.tags,
        "fingerprint": entry.fingerprint,
        "always_load": entry.always_load,
        "special": special_folder(entry.path),
        "session": entry.sources[0].session if entry.sources else None,
        "surfaced_at": entry.surfaced_at,
        "confidence": entry.confidence,
    }


def _columns(connection: apsw.Connection) -> dict[str, frozenset[str]]:
    return {
        table: frozenset(str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})"))
        for table in schema.TABLES
    }


@functools.cache
def _columns_wanted() -> dict[str, frozenset[str]]:
    """Return the columns in our statements: damage to a schema may rename one, which SQLite finds sound."""
    connection = apsw.Connection(":memory:")
    schema.create(connection)
    columns = _columns(connection)
    connection.close()
    return columns


def open_or_rebuild(path: Path) -> tuple[IndexStore, Path | None]:
    """Open a store; a damaged file is set aside first, and its new path is returned with the empty store."""
    with database.replacement_lock(path):
        kept_as = None
        try:
            store = IndexStore(path)
            if not (is_sound := database.passed_check.get(file_identity(path))):
                # The quick check does not read FTS5's index.
                if problems := store.integrity_problems(quick=is_sound is None):
                    store.close()
                    raise IndexDamaged(problems[0])
                database.passed_check[file_identity(path)] = True
        except IndexDamaged:
            kept_as = set_aside(path)
            store = IndexStore(path)
        return store, kept_as


class IndexStore(Closing):
    """A connection that writes to index.db; not to be shared between threads.

    Raises IndexUnavailable (IndexDamaged when the file is corrupt) from every method.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._connection = database.open_writer(path)
        self.has_vectors = database.has_vectors(self._connection)

    def close(self) -> None:
        self._connection.close()

    # Entries

    def upsert_entry(self, entry: Entry, *, mtime_ns: int, size: int) -> None:
        """Index the entry as it is now: its row, its chunks and their words. A dismissed entry gets only its row."""
        chunks: list[ChunkText]
        if entry.effective_status in FORGOTTEN_STATUSES:
            entry, chunks = replace(entry, title=entry.slug, tags=()), []
        else:
            chunks = list(chunk_entry(entry))
        with self.transaction():
            rowid = self._connection.execute(_UPSERT_META, self._row(entry, mtime_ns, size)).get
            self._forget_chunks(rowid)
            for chunk in chunks:
                self._insert_chunk(rowid, chunk)

    def remove(self, path: str) -> bool:
        """Forget a file; False when it was not indexed."""
        with self.transaction():
            return self._remove(path)

    def touch(self, path: str, *, mtime_ns: int, size: int) -> None:
        """Store the file's new time and size; its content did not change."""
        with self.transaction():
            self._connection.execute(
                "UPDATE entry_meta SET mtime_ns = ?, size = ?, indexed_at = ? WHERE path = ?",
                (mtime_ns, size, self._clock(), path),
            )

    def files(self) -> dict[str, FileState]:
        """Return the state of every indexed file, by path."""
        sql = f"SELECT path, mtime_ns, size, content_hash, {_INDEXED_AT} FROM entry_meta"
        rows = self._query(sql, (schema.DERIVATION,))
        return {row[0]: FileState(*row[1:]) for row in rows}

    def overwrite_removed(self) -> bool:
        """Remove deleted text from the file's bytes: words that the full-text index only marks as deleted, and the
        write-ahead log.

        Returns False when another process is reading old pages: do it again later.
        """
        with self.transaction():
            self._connection.execute("INSERT INTO chunk_fts (chunk_fts) VALUES ('optimize')")
        with database.translate_errors(self.path):
            return not self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]

    # Vectors

    def model_id(self, name: str, dimension: int) -> int:
        """Return the model's id; its table is made at first use, and replaced when the dimension changed."""
        if not self.has_vectors:
            raise IndexUnavailable("sqlite-vec cannot be loaded here: recall works on keywords only")
        with self.transaction():
            rows = self._query("SELECT id, dimension FROM vector_model WHERE name = ?", (name,))
            if rows and rows[0][1] == dimension:
                return int(rows[0][0])
            if rows:
                self._drop_model(rows[0][0])
            model_id = self._connection.execute(
                "INSERT INTO vector_model (name, dimension) VALUES (?, ?) RETURNING id", (name, dimension)
            ).get
            self._connection.execute(schema.create_vector_table(model_id, dimension))
            return int(model_id)

    def models(self) -> dict[str, int]:
        """Return model ids by name."""
        return {row[0]: row[1] for row in self._query("SELECT name, id FROM vector_model")}

    def pending_count(self, model: str) -> int:
        """Count the texts of the vault's chunks that have no vector of this model."""
        return int(self._query(f"SELECT count(*) {_PENDING}", (model,))[0][0])

    def pending_texts(self, model: str, limit: int, skip: Iterable[str] = ()) -> list[PendingText]:
        """Return texts without a vector of this model, longest first: batches of similar length need little padding."""
        sql = (
            f"SELECT p.text_hash, p.embed_text {_PENDING} "
            "AND p.text_hash NOT IN (SELECT value FROM json_each(?)) "
            "ORDER BY length(p.embed_text) DESC, p.text_hash LIMIT ?"
        )
        rows = self._query(sql, (model, json.dumps(list(skip)), limit))
        return [PendingText(*row) for row in rows]

    def path_of_text(self, text_hash: str) -> str:
        """Return the path of a note with this text; '' if there is none any more."""
        sql = (
            "SELECT m.path FROM passage p JOIN chunk c ON c.passage_id = p.id "
            "JOIN entry_meta m ON m.rowid = c.entry_rowid WHERE p.text_hash = ? LIMIT 1"
        )
        return next((str(row[0]) for row in self._query(sql, (text_hash,))), "")

    def add_vectors(
        self, model_id: int, hashes: Sequence[str], vectors: Sequence[bytes], words: Sequence[bytes]
    ) -> None:
        """Store float32 little-endian rows and packed word vectors; texts that have a vector are left alone.

        A text that the index has forgotten meanwhile is not stored.
        """
        insert = f"INSERT INTO {schema.vector_table(model_id)} (rowid, embedding) VALUES (?, ?)"
        with self.transaction():
            for text_hash, vector, packed in zip(hashes, vectors, words, strict=True):
                passage = self._connection.execute(_ADD_EMBEDDING, (model_id, packed, text_hash)).get
                if passage is not None:
                    self._connection.execute(insert, (passage, vector))

    def in_force(self) -> str | None:
        """Return the model that answers; None until a drain has ended once."""
        rows = self._query("SELECT name FROM model_in_force")
        return str(rows[0][0]) if rows else None

    def put_in_force(self, model: str) -> None:
        """Let this model answer from now on. The one before it keeps its vectors, those of others are deleted."""
        with self.transaction():
            if self.in_force() != model:
                self._connection.execute(_PUT_IN_FORCE, (model,))
            kept = "SELECT name FROM model_in_force UNION SELECT previous FROM model_in_force WHERE previous NOT NULL"
            for (model_id,) in self._query(f"SELECT id FROM vector_model WHERE name NOT IN ({kept})"):
                self._drop_model(model_id)

    def vector_models(self) -> list[VectorModel]:
        """Return every model that has vectors here."""
        sql = (
            "SELECT v.name, v.dimension, (SELECT count(*) FROM embedding e WHERE e.model_id = v.id) "
            "FROM vector_model v ORDER BY v.id"
        )
        return [VectorModel(*row) for row in self._query(sql)]

    def collect_orphans(self, *, older_than_seconds: float = ORPHAN_SECONDS) -> int:
        """Drop texts that have been in no chunk for that long, with their vectors; returns how many."""
        now = self._clock()
        in_use = "EXISTS (SELECT 1 FROM chunk c WHERE c.passage_id = passage.id)"
        with self.transaction():
            self._connection.execute(
                f"UPDATE passage SET orphaned_at = NULL WHERE orphaned_at IS NOT NULL AND {in_use}"
            )
            self._connection.execute(
                f"UPDATE passage SET orphaned_at = ? WHERE orphaned_at IS NULL AND NOT {in_use}", (now,)
            )
            if not self.has_vectors:
                return 0
            stale = [row[0] for row in self._query(_STALE_PASSAGES, (now - older_than_seconds,))]
            if stale:
                self._connection.execute(_DROPPED_VECTORS)
            tables = [schema.vector_table(model_id) for model_id in self.models().values()]
            for passage in stale:
                for table in tables:
                    self._connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (passage,))
                self._connection.execute("DELETE FROM embedding WHERE passage_id = ?", (passage,))
                self._connection.execute("DELETE FROM passage WHERE id = ?", (passage,))
        return len(stale)

    # Health

    def stats(self) -> IndexStats:
        entries, last = self._query("SELECT count(*), max(indexed_at) FROM entry_meta")[0]
        chunks = self._query("SELECT count(*) FROM chunk")[0][0]
        models = [row[0] for row in self._query("SELECT name FROM vector_model ORDER BY id")]
        answering = self.in_force() or (models[-1] if models else "")
        embedded = self._query(
            "SELECT count(*) FROM embedding e JOIN vector_model v ON v.id = e.model_id WHERE v.name = ?",
            (answering,),
        )[0][0]
        pending = self.pending_count(answering) if models else None
        pages, page_size = self._query("PRAGMA page_count")[0][0], self._query("PRAGMA page_size")[0][0]
        return IndexStats(entries, chunks, embedded, pending, tuple(models), pages * page_size, last)

    def _read_all_parts(self) -> None:
        """Raise apsw.Error where a table or a part of the vectors is missing, and UnicodeDecodeError where a text is
        none: SQLite's own check passes both."""
        for table in schema.TABLES:
            for _ in self._connection.execute(f"SELECT * FROM {table}"):
                pass
        if not self.has_vectors:
            return
        for model_id, dimension in self._query("SELECT id, dimension FROM vector_model"):
            # A search reads every vector.
            any_vector = struct.pack(f"<{dimension}f", *[1.0] * dimension)
            search = f"SELECT rowid FROM {schema.vector_table(model_id)} WHERE embedding MATCH ? AND k = 1"
            self._connection.execute(search, (any_vector,)).fetchall()

    def integrity_problems(self, *, quick: bool = False) -> list[str]:
        """Check the file with SQLite, FTS5 and counts of our own; a line for each problem, none when it is sound."""
        problems: list[str] = []
        try:
            check = "PRAGMA quick_check(5)" if quick else "PRAGMA integrity_check(20)"
            problems += [str(row[0]) for row in self._connection.execute(check) if row[0] != "ok"]
            self._read_all_parts()
            found = _columns(self._connection)
            problems += [
                f"{table} lacks a column" for table, wanted in _columns_wanted().items() if wanted - found[table]
            ]
            if not quick:
                # The rank column asks FTS5 to compare its index with its own content too.
                self._connection.execute("INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('integrity-check', 1)")
                lost = "SELECT count(*) FROM chunk WHERE rowid NOT IN (SELECT rowid FROM chunk_fts)"
                stray = "SELECT count(*) FROM chunk WHERE entry_rowid NOT IN (SELECT rowid FROM entry_meta)"
                counts = [("chunks without words", lost), ("chunks without an entry", stray)]
                for model_id in self.models().values() if self.has_vectors else ():
                    known = f"SELECT passage_id FROM embedding WHERE model_id = {model_id:d}"
                    table = schema.vector_table(model_id)
                    counts.append(
                        ("vectors without a passage", f"SELECT count(*) FROM {table} WHERE rowid NOT IN ({known})")
                    )
                for name, sql in counts:
                    if count := self._connection.execute(sql).get:
                        problems.append(f"{count} {name}")
        except (apsw.BusyError, apsw.LockedError) as error:
            # Else it would count as damage, and a sound index would be set aside.
            raise IndexUnavailable(f"{self.path} is locked by another process: try again in a moment") from error
        except (apsw.Error, UnicodeDecodeError) as error:
            problems.append(f"{type(error).__name__}: {error}")
        return problems

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block in BEGIN IMMEDIATE … COMMIT; nested uses join the outer transaction."""
        with database.translate_errors(self.path):
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        # SQLite has rolled back by itself after some errors (a full disk, say).
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with database.translate_errors(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def _row(self, entry: Entry, mtime_ns: int, size: int) -> tuple[object, ...]:
        now = self._clock()
        values: dict[str, object] = {
            **row_of(entry),
            "tags": json.dumps(list(entry.tags), ensure_ascii=False),
            "always_load": int(bool(entry.always_load)),
            "content_hash": entry.content_hash,
            "mtime_ns": mtime_ns,
            "size": size,
            "occurrences": entry.occurrences or 1,
            "updated_at": now,
            "indexed_at": now,
            "derivation": schema.DERIVATION,
        }
        return tuple(values[name] for name in _META)

    def _insert_chunk(self, entry_rowid: int, chunk: ChunkText) -> None:
        text_hash = hashlib.sha256(chunk.embed_text.encode("utf-8", "surrogatepass")).hexdigest()
        passage = self._connection.execute(_ADD_PASSAGE, (text_hash, chunk.embed_text)).get
        rowid = self._connection.execute(
            "INSERT INTO chunk (entry_rowid, ordinal, text, passage_id) VALUES (?, ?, ?, ?) RETURNING rowid",
            (entry_rowid, chunk.ordinal, chunk.body, passage),
        ).get
        self._connection.execute(
            "INSERT INTO chunk_fts (rowid, title, tags, body) VALUES (?, ?, ?, ?)",
            (rowid, *map(index_text, (chunk.title, chunk.tags, chunk.body))),
        )

    def _forget_chunks(self, entry_rowid: int) -> None:
        self._connection.execute(
            "DELETE FROM chunk_fts WHERE rowid IN (SELECT rowid FROM chunk WHERE entry_rowid = ?)",
            (entry_rowid,),
        )
        passages = self._query("DELETE FROM chunk WHERE entry_rowid = ? RETURNING passage_id", (entry_rowid,))
        # The vectors stay for a while, with the hash: a text that comes back is not embedded again.
        self._connection.executemany(
            f"UPDATE passage AS p SET embed_text = '' WHERE id = ? AND {_HAS_ORPHANED_TEXT}", passages
        )

    def _remove(self, path: str) -> bool:
        rowid = self._connection.execute("SELECT rowid FROM entry_meta WHERE path = ?", (path,)).get
        if rowid is None:
            return False
        self._forget_chunks(rowid)
        self._connection.execute("DELETE FROM entry_meta WHERE rowid = ?", (rowid,))
        return True

    def _drop_model(self, model_id: int) -> None:
        self._connection.execute(_DROPPED_VECTORS)
        self._connection.execute("DELETE FROM embedding WHERE model_id = ?", (model_id,))
        self._connection.execute("DELETE FROM vector_model WHERE id = ?", (model_id,))
        if self.has_vectors:
            self._connection.execute(f"DROP TABLE IF EXISTS {schema.vector_table(model_id)}")


_PENDING = (
    "FROM passage p WHERE EXISTS (SELECT 1 FROM chunk c WHERE c.passage_id = p.id) "
    "AND NOT EXISTS (SELECT 1 FROM embedding e JOIN vector_model v ON v.id = e.model_id "
    "WHERE v.name = ? AND e.passage_id = p.id)"
)
_HAS_ORPHANED_TEXT = "embed_text <> '' AND NOT EXISTS (SELECT 1 FROM chunk c WHERE c.passage_id = p.id)"
_ADD_EMBEDDING = (
    "INSERT OR IGNORE INTO embedding (model_id, passage_id, words) "
    "SELECT ?, id, ? FROM passage WHERE text_hash = ? RETURNING passage_id"
)
_ADD_PASSAGE = (
    "INSERT INTO passage (text_hash, embed_text) VALUES (?, ?) "
    "ON CONFLICT (text_hash) DO UPDATE SET orphaned_at = NULL, embed_text = excluded.embed_text RETURNING id"
)
_PUT_IN_FORCE = (
    "INSERT INTO model_in_force (only, name) VALUES (1, ?) "
    "ON CONFLICT (only) DO UPDATE SET previous = name, name = excluded.name, since = excluded.since"
)
_DROPPED_VECTORS = "UPDATE vector_epoch SET dropped = dropped + 1"
_STALE_PASSAGES = "SELECT id FROM passage WHERE orphaned_at <= ?"
