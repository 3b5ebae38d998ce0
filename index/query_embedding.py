"""Embed questions in the background, and cache the last ones: a question is often asked twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from .embedder import Embedder, EncodedTexts
from .languages import load_directions
from .late_interaction import WordVectors
from .ranking import DenseHit
from .search_reader import POOLED_READERS

CACHED_QUESTIONS = 512
MAX_UNKNOWN = 0.5
"""Share of a question's pieces that may be unknown to the model. Of Chinese an English model knows a third."""


@dataclass(frozen=True)
class QueryEmbedding:
    """A question as the model represents it."""

    vector: bytes
    """float32 little-endian, unit length."""
    words: WordVectors | None
    """None where the model gives no vectors of single words."""
    similarity_scale: float = 1.0
    """What similarities with `vector` are multiplied by: see `languages.LanguageDirections.neutralise`."""
    is_unread: bool = False
    """Whether the model lacks most of the question's letters: its vectors mean nothing."""

    def scaled(self, hits: list[DenseHit]) -> list[DenseHit]:
        """Return the hits of `vector` with their similarities multiplied by `similarity_scale`, at most 1."""
        if self.similarity_scale == 1.0:
            return hits
        return [replace(hit, similarity=min(1.0, self.similarity_scale * hit.similarity)) for hit in hits]


class QueryEmbedder:
    """Runs an embedder on POOLED_READERS threads; may be used from several threads."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._cache: OrderedDict[str, QueryEmbedding] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(POOLED_READERS, thread_name_prefix="dense")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(self, text: str) -> Future[QueryEmbedding]:
        """Start to embed a question. The future raises ModelUnavailable, ModelLoading."""
        return self._pool.submit(self._embed_cached, text)

    def _embed_cached(self, text: str) -> QueryEmbedding:
        with self._lock:
            if text in self._cache:
                self._cache.move_to_end(text)
                return self._cache[text]
        embedding = self._question_of(self._embedder.encode([text], query=True))
        with self._lock:
            self._cache[text] = embedding
            while len(self._cache) > CACHED_QUESTIONS:
                self._cache.popitem(last=False)
        return embedding

    def _question_of(self, encoded: EncodedTexts) -> QueryEmbedding:
        vector, words, scale = encoded.vectors[0], encoded.words[0] if encoded.words else None, 1.0
        is_unread = bool(encoded.unknown) and encoded.unknown[0] > MAX_UNKNOWN
        # Not before: numpy comes with the extra that brings a model.
        if (directions := load_directions(self.name)) is not None:
            vector, words, scale = directions.neutralise(vector, words)
        return QueryEmbedding(vector.astype("<f4").tobytes(), words, scale, is_unread)
