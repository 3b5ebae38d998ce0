"""An embedder for tests in which the model is not the point: fast, deterministic, no dependencies.

A text's vector is the sum of its words' vectors; words that `SYNONYMS` puts together share one, so
that tests can ask sideways.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from memoryvault.index.embedder import EncodedTexts
from memoryvault.index.late_interaction import WordVectors
from memoryvault.index.query import word_spans

if TYPE_CHECKING:
    import numpy.typing

    Vectors = numpy.typing.NDArray[numpy.float32]

DIMENSION = 64
SYNONYMS = {
    "yarn": "packagemanager",
    "pnpm": "packagemanager",
    "npm": "packagemanager",
    "dependencies": "packagemanager",
    "install": "packagemanager",
    "commit": "versioncontrol",
    "git": "versioncontrol",
    "branch": "versioncontrol",
}


class FakeEmbedder:
    """`delay_seconds` per text stands for a slow model; a text with POISON in it fails."""

    def __init__(self, name: str = "fake", dimension: int = DIMENSION, delay_seconds: float = 0.0) -> None:
        self.name = name
        self.dimension = dimension
        self.delay_seconds = delay_seconds
        self.calls: list[tuple[int, bool]] = []

    def encode(self, texts: Sequence[str], *, query: bool = False) -> EncodedTexts:
        vectors = self._vectors(texts, query)
        words = []
        for text in texts:
            found = tuple(word for _, _, word in word_spans(text))
            rows = [_word(SYNONYMS.get(word, word), self.dimension) for word in found]
            stacked = numpy.stack(rows) if rows else numpy.zeros((0, self.dimension), dtype=numpy.float32)
            length = numpy.maximum(numpy.linalg.norm(stacked, axis=1, keepdims=True), 1e-12)
            words.append(WordVectors(found, (stacked / length).astype(numpy.float32)))
        return EncodedTexts(vectors, tuple(words))

    def _vectors(self, texts: Sequence[str], query: bool) -> Vectors:
        self.calls.append((len(texts), query))
        if self.delay_seconds:
            time.sleep(self.delay_seconds * len(texts))
        if any("POISON" in text for text in texts):
            raise ValueError("a text that cannot be embedded")
        rows = numpy.zeros((len(texts), self.dimension), dtype=numpy.float32)
        for number, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                rows[number] += _word(SYNONYMS.get(word, word), self.dimension)
            norm = float(numpy.linalg.norm(rows[number]))
            rows[number] /= norm if norm else 1.0
        return rows


def _word(word: str, dimension: int) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return numpy.random.default_rng(seed).standard_normal(dimension).astype(numpy.float32)
