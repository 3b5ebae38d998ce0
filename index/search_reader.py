"""Read-only queries that find chunks: by keywords (FTS5), by vectors (sqlite-vec or a matrix in memory).

One reader is used by one thread at a time.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..runtime.paths import file_identity
from . import database, schema
from .catalog_reader import VALUES_OF_JSON, CatalogReader
from .ranking import DenseHit, KeywordHit
from .scope import Scope
from .vocabulary import IndexVocabulary

if TYPE_CHECKING:
    from .matrix import Matrix

KEYWORD_LIMIT = 50
DENSE_LIMIT = 60
COLUMN_WEIGHTS = (3.0, 2.0, 1.0)
"""BM25's weights of title, tags and body."""

POOLED_READERS = 4

FIRST_OVERFETCH, SECOND_OVERFETCH = 4, 64
"""Number of candidates that are tested against the scope, as a multiple of the wanted hits. Where even the second
number leaves too few, the scope is narrow, and all of it is listed."""


class ModelKey(NamedTuple):
    """A model that has embedded something here: its id, which names its table, and the length of its vectors."""

    model_id: int
    dimension: int


class VectorState(NamedTuple):
    """The state of the vectors of all models; a copy of vectors in memory is up to date if its state is equal."""

    passage_count: int
    """About how many passages there are: the highest id."""
    last_rowid: int
    """The newest row of `embedding`, 0 for none."""
    drop_count: int
    """How often vectors were dropped (table vector_epoch)."""


class PassageChunk(NamedTuple):
    """A chunk with the passage whose vector it shares, and its entry."""

    passage_id: int
    chunk_rowid: int
    entry_rowid: int


class SearchReader(CatalogReader):
    """A catalog reader that searches, too. Raises IndexUnavailable when the index cannot be used.

    Vectors are float32 little-endian bytes of unit length.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, vectors=True)
        self.has_vectors = database.has_vectors(self._connection)
        with database.translate_errors(path):
            self.vocabulary = IndexVocabulary(self._connection)

    def is_empty(self, scope: Scope) -> bool:
        """Whether no entry is within the scope."""
        condition, parameters = scope.sql()
        sql = f"SELECT 1 FROM entry_meta m WHERE {condition} LIMIT 1"
        return self._connection.execute(sql, parameters).fetchone() is None

    # Keywords

    def search_keywords(self, match: str, scope: Scope, limit: int = KEYWORD_LIMIT) -> list[KeywordHit]:
        """Return chunks that match the FTS5 expression, best first. The limit counts chunks within the scope.

        Only the best are tested against the scope, and more of them as long as too few are within it: testing every
        chunk that has one of the words takes as long as the search.
        """
        condition, parameters = scope.sql()
        ranked = self._connection.execute(
            f"SELECT rowid, -{_BM25} AS bm25 FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY bm25 DESC", (match,)
        )
        within = f"{_CHUNKS} WHERE c.rowid IN {VALUES_OF_JSON} AND {condition}"
        hits: list[KeywordHit] = []
        try:
            for size in (limit * FIRST_OVERFETCH // 2, limit * FIRST_OVERFETCH // 2, limit * SECOND_OVERFETCH):
                best = dict(itertools.islice(ranked, size))
                rows = self._connection.execute(
                    f"SELECT c.rowid, m.rowid {within}", (json.dumps(list(best)), *parameters)
                )
                entries = {row[0]: row[1] for row in rows}
                hits += [KeywordHit(rowid, entries[rowid], bm25) for rowid, bm25 in best.items() if rowid in entries]
                if len(hits) >= limit or len(best) < size:
                    return hits[:limit]
            # A narrow scope: all of it is less than what is left of the ranking.
            rows = self._connection.execute(f"SELECT c.rowid, m.rowid {_SCOPED} WHERE {condition}", parameters)
            entries = {row[0]: row[1] for row in rows}
            rest = (KeywordHit(rowid, entries[rowid], bm25) for rowid, bm25 in ranked if rowid in entries)
            hits += itertools.islice(rest, limit - len(hits))
        finally:
            ranked.close()
        return hits

    def texts_of(self, chunks: Sequence[int]) -> dict[int, str]:
        """Return title, tags and body of chunks, as the keyword index has them, by rowid."""
        sql = f"SELECT rowid, title, tags, body FROM chunk_fts WHERE rowid IN {VALUES_OF_JSON}"
        rows = self._connection.execute(sql, (json.dumps(list(chunks)),))
        return {row[0]: f"{row[1]}\n{row[2]}\n{row[3]}" for row in rows}

    # Vectors

    def find_model(self, name: str) -> ModelKey | None:
        """Return the model with that name, if it has embedded anything here."""
        sql = "SELECT id, dimension FROM vector_model WHERE name = ?"
        row = self._connection.execute(sql, (name,)).fetchone()
        return ModelKey(row[0], row[1]) if row else None

    def vector_state(self) -> VectorState:
        """Return the state of the vectors of all models: rows of `embedding` are numbered through all of them."""
        rows = self._connection.execute(
            "SELECT (SELECT max(id) FROM passage), (SELECT max(rowid) FROM embedding), "
            "(SELECT dropped FROM vector_epoch WHERE only = 1)"
        )
        count, last, drops = rows.get
        return VectorState(int(count or 0), int(last or 0), int(drops or 0))

    def iterate_vectors(self, model_id: int) -> Iterator[tuple[int, bytes]]:
        """Yield passage id and vector of every passage that the model has embedded."""
        yield from self._connection.execute(f"SELECT rowid, embedding FROM {schema.vector_table(model_id)}")

    def vectors_after(self, model_id: int, rowid: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the first `limit` (-1: all) passage ids and vectors of this model behind that row of `embedding`."""
        sql = (
            "SELECT e.passage_id, v.embedding FROM (SELECT passage_id FROM embedding NOT INDEXED "
            "WHERE rowid > ? AND model_id = ? ORDER BY rowid LIMIT ?) e "
            f"CROSS JOIN {schema.vector_table(model_id)} v ON v.rowid = e.passage_id"
        )
        return list(self._connection.execute(sql, (rowid, model_id, limit)))

    def search_vectors(
        self,
        model_id: int,
        vector: bytes,
        scope: Scope,
        limit: int = DENSE_LIMIT,
        matrix: Matrix | None = None,
        separate_kind: str | None = None,
    ) -> list[DenseHit]:
        """Return the nearest chunks; the limit counts passages within the scope, whatever is nearer outside of it.

        `matrix`: the model's vectors in memory; without it sqlite-vec reads them. `separate_kind`: a kind of entry of
        which there are few; its nearest come behind those of all others, with a limit of their own, so that neither
        crowds out the other.
        """
        if separate_kind is not None:
            others = self.search_vectors(model_id, vector, scope.without(separate_kind), limit, matrix)
            return others + self._search_kind(model_id, vector, separate_kind, scope, limit, matrix)
        condition, parameters = scope.sql()
        if matrix is not None:
            return self._search_matrix(matrix, vector, condition, parameters, limit)
        within = f"SELECT c.passage_id FROM entry_meta m JOIN chunk c ON c.entry_rowid = m.rowid WHERE {condition}"
        similarity = self._search_table(model_id, vector, limit, within, parameters)
        return _dense_hits(self._chunks_within(similarity, condition, parameters), similarity)

    def similarities_of(
        self, model_id: int, vector: bytes, chunks: Sequence[int], matrix: Matrix | None = None
    ) -> list[DenseHit]:
        """Return the exact cosine similarity of these chunks, as far as they have a vector, nearest first."""
        ids = json.dumps(list(chunks))
        sql = f"SELECT passage_id, rowid, entry_rowid FROM chunk WHERE rowid IN {VALUES_OF_JSON}"
        rows = [PassageChunk(*row) for row in self._connection.execute(sql, (ids,))]
        if matrix is not None:
            similarity = matrix.similarities(vector, [row.passage_id for row in rows])
        else:
            within = f"SELECT passage_id FROM chunk WHERE rowid IN {VALUES_OF_JSON}"
            # One search limited to these rows: a vec0 table has no quick way to a single row.
            similarity = self._search_table(model_id, vector, len(chunks), within, (ids,))
        return _dense_hits(rows, similarity)

    def word_vectors_of(self, model_id: int, chunks: Sequence[int]) -> dict[int, bytes]:
        """Return packed word vectors (late_interaction.py) by chunk, of those that have some."""
        # CROSS JOIN keeps the order of the tables: left to itself SQLite walks all embeddings.
        sql = (
            "SELECT c.rowid, e.words FROM json_each(?) l CROSS JOIN chunk c ON c.rowid = l.value "
            "CROSS JOIN embedding e ON e.model_id = ? AND e.passage_id = c.passage_id"
        )
        rows = self._connection.execute(sql, (json.dumps(list(chunks)), model_id))
        return {row[0]: row[1] for row in rows if row[1]}

    def _search_kind(
        self, model_id: int, vector: bytes, kind: str, scope: Scope, limit: int, matrix: Matrix | None
    ) -> list[DenseHit]:
        """Search one kind as `search_vectors` does: all its chunks are compared, since few are among the nearest of a
        large index."""
        condition, parameters = scope.sql()
        condition, parameters = f"m.kind = ? AND {condition}", [kind, *parameters]
        rows = self._chunks_of_scope(condition, parameters)
        if not rows:
            return []
        if matrix is not None:
            similarity = matrix.similarities(vector, list({row.passage_id for row in rows}))
        else:
            within = f"SELECT c.passage_id {_SCOPED} WHERE {condition}"
            similarity = self._search_table(model_id, vector, limit, within, parameters)
        return _dense_hits(rows, similarity)[:limit]

    def _search_matrix(
        self, matrix: Matrix, vector: bytes, condition: str, parameters: Sequence[str], limit: int
    ) -> list[DenseHit]:
        """Search a matrix as `search_vectors` does: only the nearest are tested against the scope, as in
        `search_keywords`."""
        for most in (FIRST_OVERFETCH * limit, SECOND_OVERFETCH * limit):
            similarity = matrix.nearest(vector, most)
            rows = self._chunks_within(similarity, condition, parameters)
            if len({row.passage_id for row in rows}) >= limit or len(similarity) < most:
                break
        else:
            rows = self._chunks_of_scope(condition, parameters)
            similarity = matrix.similarities(vector, list({row.passage_id for row in rows}))
        within = {row.passage_id for row in rows}
        ranked = sorted((passage for passage in similarity if passage in within), key=lambda key: -similarity[key])
        kept = set(ranked[:limit])
        return _dense_hits([row for row in rows if row.passage_id in kept], similarity)

    def _chunks_within(self, passages: Iterable[int], condition: str, parameters: Sequence[str]) -> list[PassageChunk]:
        """Return the chunks of these passages that are within the scope."""
        sql = f"SELECT c.passage_id, c.rowid, m.rowid {_CHUNKS} WHERE c.passage_id IN {VALUES_OF_JSON} AND {condition}"
        return [PassageChunk(*row) for row in self._connection.execute(sql, (json.dumps(list(passages)), *parameters))]

    def _chunks_of_scope(self, condition: str, parameters: Sequence[str]) -> list[PassageChunk]:
        """Return all chunks of the scope."""
        sql = f"SELECT c.passage_id, c.rowid, m.rowid {_SCOPED} WHERE {condition}"
        return [PassageChunk(*row) for row in self._connection.execute(sql, parameters)]

    def _search_table(
        self, model_id: int, vector: bytes, limit: int, within: str, parameters: Sequence[str]
    ) -> dict[int, float]:
        """Return the cosine similarity by passage id, of the nearest among those that the query `within` selects.

        A damaged vector may be near nothing: without a direction it has no distance.
        """
        rows: Iterable[Any] = self._connection.execute(
            f"SELECT rowid, distance FROM {schema.vector_table(model_id)} "
            f"WHERE embedding MATCH ? AND k = ? AND rowid IN ({within})",
            (vector, limit, *parameters),
        )
        return {passage: 1.0 - distance for passage, distance in rows if distance is not None}


_SCOPED = "FROM entry_meta m CROSS JOIN chunk c ON c.entry_rowid = m.rowid"
_CHUNKS = "FROM chunk c CROSS JOIN entry_meta m ON m.rowid = c.entry_rowid"
# Not the column `rank`: ordered by that, FTS5 sorts every passage with all places of its words, which takes half as
# long again.
_BM25 = f"bm25(chunk_fts, {', '.join(str(weight) for weight in COLUMN_WEIGHTS)})"


class ReaderPool:
    """Readers that are opened once and used by one thread after the other; keeps up to POOLED_READERS idle ones."""

    def __init__(self, index_db: Path) -> None:
        self._index_db = index_db
        self._idle: list[SearchReader] = []
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            readers, self._idle = self._idle, []
        for reader in readers:
            reader.close()

    @contextmanager
    def borrow(self) -> Iterator[SearchReader]:
        """Lend a reader of the file that is index.db now. Raises IndexUnavailable."""
        identity = file_identity(self._index_db)
        reader = None
        with self._lock:
            while self._idle and reader is None:
                reader = self._idle.pop()
                if reader.identity != identity:
                    reader.close()
                    reader = None
        reader = reader or SearchReader(self._index_db)
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        with self._lock:
            if len(self._idle) < POOLED_READERS:
                self._idle.append(reader)
                return
        reader.close()


def _dense_hits(rows: Iterable[PassageChunk], similarity: dict[int, float]) -> list[DenseHit]:
    """Return the chunks that have a similarity, nearest first."""
    hits = [
        DenseHit(row.chunk_rowid, row.entry_rowid, similarity[row.passage_id])
        for row in rows
        if row.passage_id in similarity
    ]
    return sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk_rowid))
