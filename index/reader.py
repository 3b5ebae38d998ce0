"""What recall asks of index.db, in SQL. Read-only; one reader is used by one thread at a time."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import apsw

from ..vault.automemory import COST_KIND
from ..vault.days import last_meant
from . import database, in_use, schema
from .ranking import DenseHit, EntryFacts, KeywordHit
from .scope import Scope

KEYWORD_LIMIT = 100
DENSE_LIMIT = 60
COLUMN_WEIGHTS = (3.0, 2.0, 1.0)
"""BM25's weights of title, tags and body."""

COUNTED_PASSAGES = 2_000
"""Counting what a narrow scope leaves of more takes longer than a millisecond."""

MAX_CANDIDATES = 4_000
"""Terms that are compared with a misspelt one."""
REMEMBERED_FROM = 5_000
"""Chunks from which a reader remembers the terms it has looked up, until their number has changed by a hundredth:
how rare a word is need not be exact, and counting the common ones takes 10 ms in an index of 100,000."""
COMMON_TERM = 500
MAX_TERM_LENGTH, MAX_TERMS_OF_A_LETTER = 24, 20_000

FIRST_LOOK, SECOND_LOOK = 4, 64
"""Candidates whose scope is looked up, as a multiple of the hits that are wanted. Where even the second look finds too
few, the scope is narrow, and all of it is listed."""

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

    def facts(self) -> EntryFacts:
        return EntryFacts(
            path=self.path,
            title=self.title,
            project=self.project,
            kind=self.kind or "",
            updated=_date(last_meant(self.surfaced_at, self.created, self.updated)),
            occurrences=self.occurrences,
        )


_ENTRY_COLUMNS = ", ".join(f"m.{name}" for name in EntryRow.__dataclass_fields__)


@dataclass
class _Terms:
    identity: tuple[int, int] | None = None
    total: int = 0
    """Chunks at the time."""
    common: dict[str, int] = field(default_factory=dict)
    by_letter: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """Terms by their length, by their first letter."""


class Remembered:
    """The terms of a large index, for all readers that are given it: FTS5 reads all occurrences of a term to tell
    that it exists."""

    def __init__(self) -> None:
        self._terms = _Terms()

    def of(self, identity: tuple[int, int] | None, total: int) -> _Terms:
        """What is remembered of this file, as long as the index has nearly the size it had then."""
        terms = self._terms
        if identity != terms.identity or abs(total - terms.total) * 100 > total:
            terms = self._terms = _Terms(identity, total)
        return terms


class Nearest(Protocol):
    """A model's vectors in memory (matrix.Matrix)."""

    def nearest(self, vector: bytes, limit: int) -> dict[int, float]:
        """Cosine similarity by passage of the `limit` nearest, nearest first."""
        ...

    def similarities(self, vector: bytes, passages: Sequence[int]) -> dict[int, float]:
        """The same of these passages, as far as they are known."""
        ...


class IndexReader:
    """One read-only connection. Raises IndexUnavailable when the index cannot be used."""

    def __init__(self, path: Path, *, vectors: bool = True, remembered: Remembered | None = None) -> None:
        self.path = path
        self.identity = database.file_identity(path)
        self._connection = database.open_reader(path, vectors=vectors)
        self._remembered = remembered or Remembered()
        self._counted = (-1, 0)
        """The state of the file (PRAGMA data_version) and the chunks in it."""
        self.has_vectors = database.has_vectors(self._connection)
        with database.explained(path):
            # In the temporary schema: the index itself is only read.
            self._connection.execute("CREATE VIRTUAL TABLE temp.chunk_vocabulary USING fts5vocab(main, chunk_fts, row)")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All queries inside see one state of the index. Raises IndexDamaged also where a part of it is missing."""
        with database.explained(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            except apsw.SQLError as error:
                # A table that is gone or has lost a part of it: SQLite itself finds nothing wrong with such a file.
                raise database.IndexDamaged(f"{self.path} is damaged ({error}): run `memory reindex`") from error
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
        """Chunks that hold a word of the expression, best first. The limit counts what is within the scope.

        The scope is asked only of the best, and of more of them as long as too few are within it: asked of
        every chunk that has one of the words it takes as long as the search.
        """
        condition, parameters = scope.sql()
        ranked = self._connection.execute(
            f"SELECT rowid, -{_BM25} AS bm25 FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY bm25 DESC", (match,)
        )
        within = f"{_CHUNKS} WHERE c.rowid IN {_LIST} AND {condition}"
        hits: list[KeywordHit] = []
        try:
            for look in (limit * FIRST_LOOK // 2, limit * FIRST_LOOK // 2, limit * SECOND_LOOK):
                best = dict(itertools.islice(ranked, look))
                rows = self._connection.execute(f"SELECT c.rowid, m.rowid {within}", (_json(best), *parameters))
                entries = {row[0]: row[1] for row in rows}
                hits += [KeywordHit(rowid, entries[rowid], bm25) for rowid, bm25 in best.items() if rowid in entries]
                if len(hits) >= limit or len(best) < look:
                    return hits[:limit]
            # A narrow scope: all of it is less than what is left of the ranking.
            rows = self._connection.execute(f"SELECT c.rowid, m.rowid {_SCOPED} WHERE {condition}", parameters)
            entries = {row[0]: row[1] for row in rows}
            rest = (KeywordHit(rowid, entries[rowid], bm25) for rowid, bm25 in ranked if rowid in entries)
            hits += itertools.islice(rest, limit - len(hits))
        finally:
            ranked.close()
        return hits

    def model(self, name: str) -> tuple[int, int] | None:
        """(id, dimension) of the model with that name, if it has embedded anything here."""
        sql = "SELECT id, dimension FROM vector_model WHERE name = ?"
        row = self._connection.execute(sql, (name,)).fetchone()
        return (row[0], row[1]) if row else None

    def vector_state(self, model_id: int) -> tuple[int, int, int]:
        """(about how many passages there are, the newest row of `embedding`, how often vectors were dropped)."""
        rows = self._connection.execute(
            "SELECT (SELECT max(id) FROM passage), (SELECT max(rowid) FROM embedding), "
            "(SELECT dropped FROM vector_epoch WHERE only = 1)"
        )
        count, last, epoch = rows.get
        return int(count or 0), int(last or 0), int(epoch or 0)

    def all_vectors(self, model_id: int) -> Iterator[tuple[int, bytes]]:
        """(passage, float32 little-endian) of every vector."""
        yield from self._connection.execute(f"SELECT rowid, embedding FROM {schema.vector_table(model_id)}")

    def added_embeddings(self, model_id: int, after: int, limit: int) -> list[tuple[int, bytes]]:
        """The same of the rows of `embedding` behind `after`, `limit` at most (-1: all)."""
        sql = (
            "SELECT e.passage_id, v.embedding FROM (SELECT passage_id FROM embedding NOT INDEXED "
            "WHERE rowid > ? AND model_id = ? ORDER BY rowid LIMIT ?) e "
            f"CROSS JOIN {schema.vector_table(model_id)} v ON v.rowid = e.passage_id"
        )
        return list(self._connection.execute(sql, (after, model_id, limit)))

    def dense(
        self,
        model_id: int,
        vector: bytes,
        scope: Scope,
        limit: int = DENSE_LIMIT,
        matrix: Nearest | None = None,
        apart: str | None = None,
    ) -> list[DenseHit]:
        """The nearest chunks; the limit counts passages within the scope, whatever is nearer outside of it.

        `apart`: a kind of entry of which there are few; its nearest come behind those of all others, with a limit of
        their own, so that neither crowds out the other.
        """
        if apart is not None:
            others = self.dense(model_id, vector, scope.without(apart), limit, matrix)
            return others + self._dense_of_kind(model_id, vector, apart, scope, limit, matrix)
        condition, parameters = scope.sql()
        if matrix is not None:
            return self._dense_of(matrix, vector, condition, parameters, limit)
        within = f"SELECT c.passage_id FROM entry_meta m JOIN chunk c ON c.entry_rowid = m.rowid WHERE {condition}"
        nearest = self._nearest(model_id, vector, limit, within, parameters)
        chunks = self._connection.execute(
            "SELECT c.passage_id, c.rowid, c.entry_rowid FROM chunk c "
            f"JOIN entry_meta m ON m.rowid = c.entry_rowid WHERE c.passage_id IN {_LIST} AND {condition}",
            (json.dumps(list(nearest)), *parameters),
        )
        hits = [DenseHit(chunk_rowid=row[1], entry_rowid=row[2], similarity=nearest[row[0]]) for row in chunks]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk_rowid))

    def _dense_of_kind(
        self, model_id: int, vector: bytes, kind: str, scope: Scope, limit: int, matrix: Nearest | None
    ) -> list[DenseHit]:
        """As `dense`, of one kind: all of it is compared, since among the nearest of a large index it has no part."""
        condition, parameters = scope.sql()
        condition, parameters = f"m.kind = ? AND {condition}", [kind, *parameters]
        listed = f"SELECT c.passage_id, c.rowid, m.rowid {_SCOPED} WHERE {condition}"
        rows = _triples(self._connection.execute(listed, parameters))
        if not rows:
            return []
        if matrix is not None:
            similar = matrix.similarities(vector, list({row[0] for row in rows}))
        else:
            within = f"SELECT c.passage_id {_SCOPED} WHERE {condition}"
            similar = self._nearest(model_id, vector, limit, within, parameters)
        hits = [DenseHit(row[1], row[2], similar[row[0]]) for row in rows if row[0] in similar]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk_rowid))[:limit]

    def _dense_of(
        self, matrix: Nearest, vector: bytes, condition: str, parameters: Sequence[str], limit: int
    ) -> list[DenseHit]:
        """As `dense`: the scope is asked only of the nearest, as in `keyword`."""
        nearest = matrix.nearest(vector, FIRST_LOOK * limit)
        rows = self._within(itertools.islice(nearest, len(nearest) // 2), condition, parameters)
        if len({row[0] for row in rows}) < limit:
            rows += self._within(itertools.islice(nearest, len(nearest) // 2, None), condition, parameters)
        if len({row[0] for row in rows}) < limit and len(nearest) == FIRST_LOOK * limit:
            nearest = matrix.nearest(vector, SECOND_LOOK * limit)
            rows = self._within(nearest, condition, parameters)
        if len({row[0] for row in rows}) < limit and len(nearest) == SECOND_LOOK * limit:
            listed = f"SELECT c.passage_id, c.rowid, m.rowid {_SCOPED} WHERE {condition}"
            rows = _triples(self._connection.execute(listed, parameters))
            nearest = matrix.similarities(vector, list({row[0] for row in rows}))
        within = {row[0] for row in rows}
        ranked = sorted((passage for passage in nearest if passage in within), key=lambda passage: -nearest[passage])
        kept = set(ranked[:limit])
        hits = [DenseHit(row[1], row[2], nearest[row[0]]) for row in rows if row[0] in kept]
        return sorted(hits, key=lambda hit: (-hit.similarity, hit.chunk_rowid))

    def _within(self, passages: Iterable[int], condition: str, parameters: Sequence[str]) -> list[tuple[int, int, int]]:
        """(passage, chunk, entry) of those passages that are within the scope."""
        sql = f"SELECT c.passage_id, c.rowid, m.rowid {_CHUNKS} WHERE c.passage_id IN {_LIST} AND {condition}"
        return _triples(self._connection.execute(sql, (_json(passages), *parameters)))

    def similarities(
        self, model_id: int, vector: bytes, chunks: Sequence[int], matrix: Nearest | None = None
    ) -> list[DenseHit]:
        """Exact cosine similarity of these chunks, as far as they have a vector."""
        listed = json.dumps(list(chunks))
        rows = _triples(
            self._connection.execute(
                f"SELECT passage_id, rowid, entry_rowid FROM chunk WHERE rowid IN {_LIST}", (listed,)
            )
        )
        if matrix is not None:
            similarity = matrix.similarities(vector, [row[0] for row in rows])
        else:
            within = f"SELECT passage_id FROM chunk WHERE rowid IN {_LIST}"
            # One search limited to these rows: a vec0 table has no quick way to a single row.
            similarity = self._nearest(model_id, vector, len(chunks), within, (listed,))
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
        """Number of chunks. Counted once as long as nobody writes: it takes a millisecond for each 100,000."""
        version = int(self._connection.execute("PRAGMA data_version").get)
        if version != self._counted[0]:
            self._counted = version, int(self._connection.execute("SELECT count(*) FROM chunk").get)
        return self._counted[1]

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many chunks each stemmed term occurs."""
        remembered = self._remembered.of(self.identity, self.total)
        common = remembered.common
        rows = self._connection.execute(
            f"SELECT term, doc FROM temp.chunk_vocabulary WHERE term IN {_LIST}",
            (json.dumps([term for term in terms if term not in common]),),
        )
        found = {row[0]: row[1] for row in rows}
        if remembered.total >= REMEMBERED_FROM:
            common.update((term, count) for term, count in found.items() if count >= COMMON_TERM)
        return found | {term: common[term] for term in terms if term in common}

    def candidates(self, term: str) -> list[str]:
        """Stemmed terms with the first letter of `term` and nearly its length."""
        if not term:
            return []
        remembered = self._remembered.of(self.identity, self.total)
        if remembered.total < REMEMBERED_FROM:
            return self._terms(term[0], len(term) - 2, len(term) + 2, MAX_CANDIDATES)
        by_length = remembered.by_letter.get(term[0])
        if by_length is None:
            by_length = {}
            for each in self._terms(term[0], 2, MAX_TERM_LENGTH, MAX_TERMS_OF_A_LETTER):
                by_length.setdefault(len(each), []).append(each)
            remembered.by_letter[term[0]] = by_length
        lengths = range(len(term) - 2, len(term) + 3)
        return [each for length in lengths for each in by_length.get(length, ())]

    def _terms(self, letter: str, shortest: int, longest: int, limit: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT term FROM temp.chunk_vocabulary "
            "WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
            (letter, letter + "\U0010ffff", shortest, longest, limit),
        )
        return [row[0] for row in rows]

    def entries(self, rowids: Iterable[int]) -> dict[int, EntryRow]:
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE m.rowid IN {_LIST}"
        rows = self._connection.execute(sql, (json.dumps(sorted(set(rowids))),))
        return {row[0]: EntryRow(*row) for row in rows}

    def newest(self, scope: Scope, limit: int) -> list[EntryRow]:
        """Entries of the scope, last updated first."""
        condition, parameters = scope.sql()
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE {condition} {_NEWEST_FIRST} LIMIT ?"
        return [EntryRow(*row) for row in self._connection.execute(sql, (*parameters, limit))]

    def listed(self, scope: Scope, offset: int, limit: int, *, in_place: bool = False) -> list[EntryRow]:
        """`limit` entries of the scope that say something, behind the first `offset`, last updated first.

        `in_place`: only where entries in use lie.
        """
        condition, parameters = _listable(scope, in_place=in_place)
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE {condition} {_NEWEST_FIRST} LIMIT ? OFFSET ?"
        return [EntryRow(*row) for row in self._connection.execute(sql, (*parameters, limit, offset))]

    def count_up_to(self, most: int, scope: Scope) -> int:
        """How many entries are within the scope, no more than `most`. A large index has as many: it is not counted."""
        if self.total > COUNTED_PASSAGES:
            return most
        return min(most, self.count(scope))

    def count(self, scope: Scope, *, in_place: bool = False) -> int:
        """How many entries of the scope `listed` gives."""
        condition, parameters = _listable(scope, in_place=in_place)
        return int(self._connection.execute(f"SELECT count(*) FROM entry_meta m WHERE {condition}", parameters).get)

    def values(self, column: Literal["kind", "project", "group_name"]) -> list[str]:
        """What occurs in this column, in its order."""
        # Each is the next one in the column's index, where there is one: no walk over all entries.
        sql = (
            f"WITH RECURSIVE each(value) AS (SELECT min({column}) FROM entry_meta WHERE {column} > '' UNION ALL "
            f"SELECT (SELECT min({column}) FROM entry_meta WHERE {column} > each.value) FROM each "
            "WHERE each.value IS NOT NULL) SELECT value FROM each WHERE value IS NOT NULL"
        )
        return [row[0] for row in self._connection.execute(sql)]

    def sessions(self) -> dict[str, tuple[int, str]]:
        """How many entries were first learned in each session, and the last day on which one of them was made."""
        sql = (
            "SELECT session, count(*), max(COALESCE(created, '')) FROM entry_meta "
            "WHERE session > '' AND lower(COALESCE(kind, '')) <> ? GROUP BY session"
        )
        return {row[0]: (row[1], row[2]) for row in self._connection.execute(sql, (COST_KIND,))}

    def of_session(self, session: str) -> list[EntryRow]:
        """Entries that were first learned in this session, wherever they lie now."""
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE m.session = ? {_NEWEST_FIRST}"
        return [EntryRow(*row) for row in self._connection.execute(sql, (session,))]

    def at_paths(self, paths: Iterable[str]) -> list[EntryRow]:
        """The entries at these paths, as far as they are indexed."""
        sql = f"SELECT {_ENTRY_COLUMNS} FROM entry_meta m WHERE m.path IN {_LIST} {_NEWEST_FIRST}"
        return [EntryRow(*row) for row in self._connection.execute(sql, (json.dumps(sorted(paths)),))]

    def paths_of_kind(self, kind: str, since: date) -> list[str]:
        """Paths of the active entries of this kind that were made since that day, the newest first."""
        sql = (
            "SELECT m.path FROM entry_meta m WHERE m.kind = ? AND COALESCE(NULLIF(m.status, ''), 'active') = 'active' "
            "AND m.created >= ? ORDER BY m.created DESC, m.path"
        )
        return [row[0] for row in self._connection.execute(sql, (kind, since.isoformat()))]

    def made_by_day(self) -> dict[str, int]:
        """How many entries in use were made on each day (YYYY-MM-DD), '' for those that do not say."""
        sql = (
            "SELECT substr(COALESCE(m.created, ''), 1, 10) AS day, count(*) FROM entry_meta m "
            f"WHERE {in_use.IN_USE} GROUP BY day"
        )
        return {row[0]: row[1] for row in self._connection.execute(sql)}

    def set_aside(self) -> dict[str, str]:
        """See `in_use.set_aside`."""
        return in_use.set_aside(self._connection)

    def file_states(self) -> dict[str, tuple[int, int]]:
        """By path, (time of change in ns, size) of the file as it was indexed."""
        rows = self._connection.execute("SELECT path, mtime_ns, size FROM entry_meta")
        return {row[0]: (row[1], row[2]) for row in rows}

    def paths(self) -> frozenset[str]:
        """Of every note that the index knows."""
        return frozenset(row[0] for row in self._connection.execute("SELECT path FROM entry_meta"))

    def with_words(self, words: Sequence[str], limit: int) -> list[str]:
        """Paths of living entries whose beginning has any of the words, those with the most and rarest first."""
        if not words:
            return []
        match = " OR ".join('"' + word.replace('"', '""') + '"' for word in dict.fromkeys(words))
        sql = (
            "SELECT m.path FROM chunk_fts f CROSS JOIN chunk c ON c.rowid = f.rowid "
            "CROSS JOIN entry_meta m ON m.rowid = c.entry_rowid "
            "WHERE chunk_fts MATCH ? AND c.ordinal = 0 AND COALESCE(NULLIF(m.status, ''), 'active') = 'active' "
            "AND m.special IN ('', '_always-load') ORDER BY bm25(chunk_fts) LIMIT ?"
        )
        return [row[0] for row in self._connection.execute(sql, (match, limit))]

    def in_folder(self, special: str) -> dict[str, str]:
        """Paths of the notes whose special folder this is (`_review`), with the day they were made, '' for none.

        Of ideas with the time at which they came up.
        """
        day = "COALESCE(CASE kind WHEN 'idea' THEN surfaced_at END, created, '')"
        sql = f"SELECT path, {day} FROM entry_meta WHERE special = ?"
        return dict(self._connection.execute(sql, (special,)))

    def in_folder_with(self, special: str, words: Sequence[str]) -> set[str]:
        """Paths of those whose title or text has each of these pieces of text, whatever their case."""
        piece = (
            "(m.title LIKE ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM chunk c WHERE c.entry_rowid = m.rowid"
            " AND c.text LIKE ? ESCAPE '\\'))"
        )
        sql = f"SELECT m.path FROM entry_meta m WHERE {' AND '.join(['m.special = ?', *[piece] * len(words)])}"
        patterns = [f"%{_WILD.sub(_ESCAPED, word)}%" for word in words]
        parameters = [special, *(pattern for pattern in patterns for _ in range(2))]
        return {row[0] for row in self._connection.execute(sql, parameters)}

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


def _listable(scope: Scope, *, in_place: bool) -> tuple[str, list[str]]:
    condition, parameters = scope.sql()
    where = f"{condition} AND {in_use.SAYS_SOMETHING}"
    return f"{where} AND {in_use.IN_PLACE}" if in_place else where, parameters


_WILD = re.compile(r"[%_\\]")
_ESCAPED = r"\\\g<0>"
"""What LIKE takes as more than itself, and how it takes it as itself."""
_NEWEST_FIRST = "ORDER BY COALESCE(NULLIF(m.updated, ''), m.created, '') DESC, m.path"
_LISTED = "json_each(?)"
_LIST = f"(SELECT value FROM {_LISTED})"
_SCOPED = "FROM entry_meta m CROSS JOIN chunk c ON c.entry_rowid = m.rowid"
_CHUNKS = "FROM chunk c CROSS JOIN entry_meta m ON m.rowid = c.entry_rowid"
# Not the column `rank`: ordered by that, FTS5 sorts every passage with all places of its words, which takes half as
# long again.
_BM25 = f"bm25(chunk_fts, {', '.join(str(weight) for weight in COLUMN_WEIGHTS)})"


def _triples(rows: Iterable[Any]) -> list[tuple[int, int, int]]:
    return [(row[0], row[1], row[2]) for row in rows]


def _json(rowids: Iterable[int]) -> str:
    return json.dumps(list(rowids))


@lru_cache(4096)
def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat((text or "")[:10])
    except ValueError:
        return None
