"""What recall asks of index.db, in SQL. Read-only; one reader is used by one thread at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from . import database, schema
from .ranking import DenseHit, EntryFacts, KeywordHit
from .scope import Scope

KEYWORD_LIMIT = 100
DENSE_LIMIT = 60
COLUMN_WEIGHTS = (3.0, 2.0, 1.0)
"""BM25's weights of title, tags and body."""

MAX_CANDIDATES = 4_000
"""Terms that are compared with a misspelt one."""

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

    def facts(self) -> EntryFacts:
        return EntryFacts(
            path=self.path,
            title=self.title,
            project=self.project,
            kind=self.kind or "",
            updated=_date(self.updated or self.created),
            occurrences=self.occurrences,
        )


_ENTRY_COLUMNS = ", ".join(f"m.{name}" for name in EntryRow.__dataclass_fields__)


class IndexReader:
    """One read-only connection. Raises IndexUnavailable when the index cannot be used."""

    def __init__(self, path: Path, *, vectors: bool = True) -> None:
        self.path = path
        self.identity = database.file_identity(path)
        self._connection = database.open_reader(path, vectors=vectors)
        self.has_vectors = database.has_vectors(self._connection)
        with database.explained(path):
            # In the temporary schema: the index itself is only read.
            self._connection.execute("CREATE VIRTUAL TABLE temp.chunk_vocabulary USING fts5vocab(main, chunk_fts, row)")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All queries inside see one state of the index."""
        with database.explained(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    @contextmanager
    def interrupted_at(self, deadline: float | None) -> Iterator[None]:
        """Past `deadline` (time.monotonic) a query inside raises apsw.InterruptError."""
        if deadline is None:
            yield
            return
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, _PROGRESS_STEPS)
        try:
            yield
        finally:
            self._connection.set_progress_handler(None)

    def keyword(self, match: str, scope: Scope, limit: int = KEYWORD_LIMIT) -> list[KeywordHit]:
        """Chunks that hold a word of the expression, best first. The scope is applied before the limit."""
        condition, parameters = scope.sql()
        weights = ", ".join(str(weight) for weight in COLUMN_WEIGHTS)
        sql = (
            "SELECT chunk_fts.rowid, c.entry_rowid, -chunk_fts.rank FROM chunk_fts "
            "CROSS JOIN chunk c ON c.rowid = chunk_fts.rowid "
            "CROSS JOIN entry_meta m ON m.rowid = c.entry_rowid "
            f"WHERE chunk_fts MATCH ? AND chunk_fts.rank MATCH 'bm25({weights})' AND {condition} "
            "ORDER BY chunk_fts.rank LIMIT ?"
        )
        rows = self._connection.execute(sql, (match, *parameters, limit))
        return [KeywordHit(chunk_rowid=row[0], entry_rowid=row[1], bm25=row[2]) for row in rows]

    def model(self, name: str) -> tuple[int, int] | None:
        """(id, dimension) of the model with that name, if it has embedded anything here."""
        sql = "SELECT id, dimension FROM vector_model WHERE name = ?"
        row = self._connection.execute(sql, (name,)).fetchone()
        return (row[0], row[1]) if row else None

    def dense(self, model_id: int, vector: bytes, scope: Scope, limit: int = DENSE_LIMIT) -> list[DenseHit]:
        """The nearest chunks within the scope (applied before the search, not after it)."""
        condition, parameters = scope.sql()
        within = f"SELECT c.passage_id FROM entry_meta m JOIN chunk c ON c.entry_rowid = m.rowid WHERE {condition}"
        nearest = self._nearest(model_id, vector, limit, within, parameters)
        chunks = self._connection.execute(
            "SELECT c.passage_id, c.rowid, c.entry_rowid FROM chunk c "
            f"JOIN entry_meta m ON m.rowid = c.entry_rowid WHERE c.passage_id IN {_LIST} AND {condition}",
            (json.dumps(list(nearest)), *parameters),
        )
        hits = [DenseHit(chunk_rowid=row[1], entry_rowid=row[2], similarity=nearest[row[0]]) for row in chunks]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk_rowid))

    def similarities(self, model_id: int, vector: bytes, chunks: Sequence[int]) -> list[DenseHit]:
        """Exact cosine similarity of these chunks, as far as they have a vector."""
        listed = json.dumps(list(chunks))
        within = f"SELECT passage_id FROM chunk WHERE rowid IN {_LIST}"
        # One search limited to these rows: a vec0 table has no quick way to a single row.
        similarity = self._nearest(model_id, vector, len(chunks), within, (listed,))
        rows = self._connection.execute(
            f"SELECT passage_id, rowid, entry_rowid FROM chunk WHERE rowid IN {_LIST}", (listed,)
        )
        return [
            DenseHit(chunk_rowid=row[1], entry_rowid=row[2], similarity=similarity[row[0]])
            for row in rows
            if row[0] in similarity
        ]

    def _nearest(
        self, model_id: int, vector: bytes, limit: int, within: str, parameters: Sequence[str]
    ) -> dict[Any, float]:
        """Cosine similarity by passage, of the nearest among those that the query `within` gives."""
        rows: Iterable[Any] = self._connection.execute(
            f"SELECT rowid, distance FROM {schema.vector_table(model_id)} "
            f"WHERE embedding MATCH ? AND k = ? AND rowid IN ({within})",
            (vector, limit, *parameters),
        )
        return {row[0]: 1.0 - row[1] for row in rows}

    def words(self, model_id: int, chunks: Sequence[int]) -> dict[int, bytes]:
        """Packed word vectors by chunk, of those that have some."""
        # CROSS JOIN keeps the order of the tables: left to itself SQLite walks all embeddings.
        sql = (
            f"SELECT c.rowid, e.words FROM {_LISTED} l CROSS JOIN chunk c ON c.rowid = l.value "
            "CROSS JOIN embedding e ON e.model_id = ? AND e.passage_id = c.passage_id"
        )
        rows = self._connection.execute(sql, (json.dumps(list(chunks)), model_id))
        return {row[0]: row[1] for row in rows if row[1]}

    def texts(self, chunks: Sequence[int]) -> dict[int, str]:
        """Title, tags and body of chunks, as the keyword index has them."""
        sql = f"SELECT rowid, title, tags, body FROM chunk_fts WHERE rowid IN {_LIST}"
        rows = self._connection.execute(sql, (json.dumps(list(chunks)),))
        return {row[0]: f"{row[1]}\n{row[2]}\n{row[3]}" for row in rows}

    # Vocabulary (query.refine)

    @property
    def total(self) -> int:
        """Number of chunks."""
        return int(self._connection.execute("SELECT count(*) FROM chunk").get)

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many chunks each stemmed term occurs."""
        rows = self._connection.execute(
            f"SELECT term, doc FROM temp.chunk_vocabulary WHERE term IN {_LIST}", (json.dumps(list(terms)),)
        )
        return {row[0]: row[1] for row in rows}

    def candidates(self, term: str) -> list[str]:
        """Stemmed terms with the first letter of `term` and nearly its length."""
        if not term:
            return []
        rows = self._connection.execute(
            "SELECT term FROM temp.chunk_vocabulary WHERE term >= ? AND term < ? "
            "AND length(term) BETWEEN ? AND ? LIMIT ?",
            (term[0], term[0] + "\U0010ffff", len(term) - 2, len(term) + 2, MAX_CANDIDATES),
        )
        return [row[0] for row in rows]

    def entries(self, rowids: Iterable[int]) -> dict[int, EntryRow]:
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE m.rowid IN {_LIST}"
        rows = self._connection.execute(sql, (json.dumps(sorted(set(rowids))),))
        return {row[0]: EntryRow(*row) for row in rows}

    def newest(self, scope: Scope, limit: int) -> list[EntryRow]:
        """Entries of the scope, last updated first."""
        condition, parameters = scope.sql()
        sql = (
            f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE {condition} "
            "ORDER BY COALESCE(NULLIF(m.updated, ''), m.created, '') DESC, m.path LIMIT ?"
        )
        return [EntryRow(*row) for row in self._connection.execute(sql, (*parameters, limit))]

    def chunks(self, rowids: Sequence[int]) -> dict[int, tuple[int, str]]:
        """(ordinal, text) of these chunks."""
        sql = f"SELECT rowid, ordinal, text FROM chunk WHERE rowid IN {_LIST}"
        rows = self._connection.execute(sql, (json.dumps(list(rowids)),))
        return {row[0]: (row[1], row[2]) for row in rows}

    def first_chunks(self, entries: Sequence[int]) -> dict[int, tuple[int, str]]:
        """(ordinal, text) of the first chunk, by entry."""
        sql = f"SELECT entry_rowid, ordinal, text FROM chunk WHERE ordinal = 0 AND entry_rowid IN {_LIST}"
        rows = self._connection.execute(sql, (json.dumps(list(entries)),))
        return {row[0]: (row[1], row[2]) for row in rows}


_LISTED = "json_each(?)"
_LIST = f"(SELECT value FROM {_LISTED})"


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat((text or "")[:10])
    except ValueError:
        return None
