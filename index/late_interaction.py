"""Word vectors: match each word of a question with the words of a chunk, in their contexts.

The model gives a vector for every word piece before it averages them into the text's one vector. Kept at one bit per
dimension (48 bytes a word for MiniLM), they let each word of a question find its nearest word in a chunk: "late
interaction". This finds more than BM25 and the text's one vector together, and distinguishes a word of the same meaning
from one of the same spelling. Measured in docs/benchmarks.md; one bit loses nothing against floats there.

numpy is imported where it is used: it comes with the extra `semantic`, without which there are no word vectors.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .query import QueryAnalysis, Term, is_significant, word_spans
from .ranking import SAME_WORD_SIMILARITY, WordEvidence
from .stemming import stem, stems

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Floats = numpy.typing.NDArray[numpy.float32]

MAX_WORDS_PER_CHUNK = 256
MAX_BITS = 512
"""Most dimensions that are kept of a vector: the first ones."""
_HEADER = struct.Struct("<BHH")
_FORMAT = 1
_ROWS_AT_ONCE = 1024
"""Words of chunks that are compared at once: as floats they stay in the processor's cache."""
CORRECTED_WORD_SIMILARITY = 0.5
"""The least similarity that counts for a word whose spelling was corrected."""


@dataclass(frozen=True)
class WordVectors:
    """The words of one text, in order, with their vectors: float32[len(words), dimension], unit length."""

    words: tuple[str, ...]
    vectors: Floats


def pool_word_vectors(text: str, offsets: Sequence[tuple[int, int]], pieces: Floats, *, skip: int = 0) -> WordVectors:
    """Average the vectors of the word pieces of each word of `text`.

    `offsets` are the tokenizer's (start, end) in `text`, empty for special tokens; `pieces` is
    float32[len(offsets), dimension]. Words that begin before `skip` (a model's prefix) and words
    that the model no longer read are left out.
    """
    import numpy

    starts, words = list[int](), list[str]()
    order: list[int] = []
    piece = 0
    for start, end, word in word_spans(text):
        while piece < len(offsets) and (offsets[piece][1] <= start or offsets[piece][0] == offsets[piece][1]):
            piece += 1
        first = len(order)
        at = piece
        while at < len(offsets) and offsets[at][0] < end and offsets[at][1] > offsets[at][0]:
            order.append(at)
            at += 1
        if len(order) > first and start >= skip:
            starts.append(first)
            words.append(word)
        else:
            del order[first:]
    if not words:
        return WordVectors((), numpy.zeros((0, pieces.shape[1]), dtype=numpy.float32))
    sums = numpy.add.reduceat(pieces[order], starts, axis=0)
    length = numpy.linalg.norm(sums, axis=1, keepdims=True)
    return WordVectors(tuple(words), (sums / numpy.maximum(length, 1e-12)).astype(numpy.float32))


def pack_words(words: WordVectors) -> bytes:
    """Pack the significant words of a chunk for the index: a hash of each stem, then one bit per dimension."""
    import numpy

    kept = [i for i, word in enumerate(words.words) if is_significant(word)][:MAX_WORDS_PER_CHUNK]
    bits = min(words.vectors.shape[1], MAX_BITS) & ~7
    identities = numpy.array([_identity(stem(words.words[i])) for i in kept], dtype="<u4")
    signs = numpy.packbits(words.vectors[kept, :bits] > 0, axis=1)
    return _HEADER.pack(_FORMAT, len(kept), bits) + identities.tobytes() + signs.tobytes()


def match_vectors(query: QueryAnalysis, words: WordVectors, packed: Mapping[int, bytes]) -> dict[int, WordEvidence]:
    """Match the terms of a question, by their vectors `words`, with packed chunks; both mappings are by chunk rowid.

    A chunk without words, or whose bytes are of another format or size, is left out.
    """
    import numpy

    terms, vectors = _query_vectors(query, words)
    bits = min(vectors.shape[1], MAX_BITS) & ~7
    rowids, counts, identities, signs = [], [], [], []
    for rowid, data in packed.items():
        version, count, size = _HEADER.unpack_from(data) if len(data) >= _HEADER.size else (0, 0, 0)
        if version != _FORMAT or size != bits or len(data) != _HEADER.size + count * (4 + bits // 8) or count == 0:
            continue
        rowids.append(rowid)
        counts.append(count)
        split = _HEADER.size + 4 * count
        identities.append(data[_HEADER.size : split])
        signs.append(data[split:])
    if not rowids or not terms:
        return {}
    starts = numpy.cumsum([0, *counts[:-1]])
    short = vectors[:, :bits]
    short = (short / numpy.maximum(numpy.linalg.norm(short, axis=1, keepdims=True), 1e-12)).T
    rows = numpy.frombuffer(b"".join(signs), numpy.uint8).reshape(-1, bits // 8)
    blocks = [
        numpy.unpackbits(rows[start : start + _ROWS_AT_ONCE], axis=1).astype(numpy.float32) @ short
        for start in range(0, len(rows), _ROWS_AT_ONCE)
    ]
    # Each bit means +1 or -1; the sign vector has length sqrt(bits).
    similarity = (2.0 * numpy.concatenate(blocks) - short.sum(axis=0)) / numpy.sqrt(bits)
    every = numpy.frombuffer(b"".join(identities), "<u4")
    is_same = numpy.zeros(similarity.shape, dtype=bool)
    for column, term in enumerate(terms):
        for spelling in (term.stem, *term.corrections):
            is_same[:, column] |= every == _identity(spelling)
    same = numpy.maximum.reduceat(numpy.where(is_same, similarity, -1.0), starts, axis=0)
    # A misspelt word has a meaningless vector: it counts as a word that is there.
    misspelt = numpy.array([bool(term.corrections) for term in terms])
    same = numpy.where((same > -1.0) & misspelt, numpy.maximum(same, CORRECTED_WORD_SIMILARITY), same)
    other = numpy.maximum.reduceat(numpy.where(is_same, -1.0, similarity), starts, axis=0)
    weights = numpy.array([term.weight for term in terms])
    weights = weights / weights.sum()
    is_match = (same > -1.0) & (same >= other)
    same_score = numpy.where(is_match, same, 0.0) @ weights
    related = numpy.where(is_match, 0.0, numpy.maximum(other, 0.0)) @ weights
    coverage = is_match @ weights
    return {
        rowid: WordEvidence(float(same_score[i]), float(related[i]), float(coverage[i]))
        for i, rowid in enumerate(rowids)
    }


def match_texts(query: QueryAnalysis, texts: Mapping[int, str]) -> dict[int, WordEvidence]:
    """Match the terms of a question with texts, by their stems alone; both mappings are by chunk rowid."""
    evidence = {}
    for rowid, text in texts.items():
        present = set(stems(text))
        coverage = sum(term.weight for term in query.terms if not present.isdisjoint((term.stem, *term.corrections)))
        evidence[rowid] = WordEvidence(SAME_WORD_SIMILARITY * coverage, 0.0, coverage)
    return evidence


def _query_vectors(query: QueryAnalysis, words: WordVectors) -> tuple[list[Term], Any]:
    """The terms that have a vector, and the vectors, float32[len(terms), dimension]: of a repeated word, the first."""
    position = {word: i for i, word in reversed(list(enumerate(words.words)))}
    terms = [term for term in query.terms if term.word in position]
    return terms, words.vectors[[position[term.word] for term in terms]]


def _identity(term: str) -> int:
    return zlib.crc32(term.encode("utf-8", "replace"))
