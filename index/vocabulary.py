"""The terms of the keyword index: how often each occurs, and which of them a misspelt word may be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

MAX_CANDIDATES = 4_000
"""Most terms that are compared with a misspelt one."""
CACHE_FROM_CHUNKS = 5_000
"""Number of chunks from which terms are cached, until the number has changed by a hundredth. The rarity of a word need
not be exact, and counting the common ones takes 10 ms in an index of 100,000."""
COMMON_TERM_CHUNKS = 500
"""Number of chunks from which a term is common: its count is cached."""
MAX_TERM_LENGTH, MAX_TERMS_PER_LETTER = 24, 20_000


@dataclass
class _CachedTerms:
    identity: tuple[int, int] | None = None
    chunk_count: int = 0
    """When the first of them was read."""
    common: dict[str, int] = field(default_factory=dict)
    """Number of chunks by common term."""
    by_letter: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    """Terms by their length, by their first letter."""


class TermCache:
    """Cached terms of one large index, shared by its readers: FTS5 reads every occurrence of a term to look it up."""

    def __init__(self) -> None:
        self._terms = _CachedTerms()

    def terms_of(self, identity: tuple[int, int] | None, chunk_count: int) -> _CachedTerms:
        """Return the cached terms of this file; a new, empty cache once the number of chunks has changed by a
        hundredth."""
        terms = self._terms
        if identity != terms.identity or abs(chunk_count - terms.chunk_count) * 100 > chunk_count:
            terms = self._terms = _CachedTerms(identity, chunk_count)
        return terms


class IndexVocabulary:
    """The `query.Vocabulary` of one index. `identity` is that of the file (`paths.file_identity`)."""

    def __init__(self, connection: apsw.Connection, identity: tuple[int, int] | None, cache: TermCache) -> None:
        self._connection = connection
        self._identity = identity
        self._cache = cache
        self._counted = (-1, 0)
        """The state of the file (PRAGMA data_version) and the chunks in it."""
        # In the temporary schema: the index itself is only read.
        self._connection.execute("CREATE VIRTUAL TABLE temp.chunk_vocabulary USING fts5vocab(main, chunk_fts, row)")

    @property
    def chunk_count(self) -> int:
        """Number of chunks. Counted again only after a write: it takes a millisecond for each 100,000."""
        version = int(self._connection.execute("PRAGMA data_version").get)
        if version != self._counted[0]:
            self._counted = version, int(self._connection.execute("SELECT count(*) FROM chunk").get)
        return self._counted[1]

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """Number of chunks by stemmed term, of those that occur."""
        cached = self._cache.terms_of(self._identity, self.chunk_count)
        common = cached.common
        rows = self._connection.execute(
            "SELECT term, doc FROM temp.chunk_vocabulary WHERE term IN (SELECT value FROM json_each(?))",
            (json.dumps([term for term in terms if term not in common]),),
        )
        counts = {row[0]: row[1] for row in rows}
        if cached.chunk_count >= CACHE_FROM_CHUNKS:
            common.update((term, count) for term, count in counts.items() if count >= COMMON_TERM_CHUNKS)
        return counts | {term: common[term] for term in terms if term in common}

    def spelling_candidates(self, term: str) -> list[str]:
        """Stemmed terms with the first letter of `term` and a length that differs by at most two."""
        if not term:
            return []
        cached = self._cache.terms_of(self._identity, self.chunk_count)
        if cached.chunk_count < CACHE_FROM_CHUNKS:
            return self._read_terms(term[0], len(term) - 2, len(term) + 2, MAX_CANDIDATES)
        by_length = cached.by_letter.get(term[0])
        if by_length is None:
            by_length = {}
            for known in self._read_terms(term[0], 2, MAX_TERM_LENGTH, MAX_TERMS_PER_LETTER):
                by_length.setdefault(len(known), []).append(known)
            cached.by_letter[term[0]] = by_length
        lengths = range(len(term) - 2, len(term) + 3)
        return [known for length in lengths for known in by_length.get(length, ())]

    def _read_terms(self, letter: str, shortest: int, longest: int, limit: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT term FROM temp.chunk_vocabulary "
            "WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
            (letter, letter + "\U0010ffff", shortest, longest, limit),
        )
        return [row[0] for row in rows]
