"""A linear model over hashed words and characters: the reader that needs no language model.

`training/reader` builds the weights. The n-grams are hashed, so that the weights hold nobody's words.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from zlib import crc32

WEIGHTS = Path(__file__).with_name("ngrams.safetensors")
BUCKETS = 1 << 15
BEFORE_BUCKETS = 1 << 13
GROUPS = (("w", BUCKETS), ("c", BUCKETS), ("b", BEFORE_BUCKETS))
"""Words and pairs of words, pieces of words, words of the agent: each has its own buckets."""
DENSE = 6
"""Number of features besides the n-grams: see `_dense`."""
MOST_CHARS = 1500
BEFORE_CHARS = 300
_TOKEN = re.compile(r"\w+|[^\w\s]")

Features = list[tuple[int, float]]
"""Index of a weight, and the value that it is multiplied by."""


def features(text: str, before: str) -> Features:
    """Return the features of a message (or a sentence of one) and of the agent's words before it."""
    words = [token.lower() for token in _TOKEN.findall(text[:MOST_CHARS])]
    agent = [token.lower() for token in _TOKEN.findall(before[-BEFORE_CHARS:])]
    pieces = {
        padded[start : start + size]
        for word in set(words)
        if (padded := f" {word} ")
        for size in (3, 4, 5)
        for start in range(max(1, len(padded) - size + 1))
    }
    found: Features = []
    offset = 0
    for (name, buckets), grams in zip(GROUPS, (_with_pairs(words), pieces, _with_pairs(agent)), strict=True):
        if grams:
            value = 1 / math.sqrt(len(grams))
            indexes = {crc32(f"{name}{gram}".encode("utf-8", "replace")) % buckets for gram in grams}
            found += [(offset + index, value) for index in sorted(indexes)]
        offset += buckets
    found += [(offset + number, value) for number, value in enumerate(_dense(text, words, before)) if value]
    return found


SIZE = sum(buckets for _, buckets in GROUPS) + DENSE


def _with_pairs(words: Sequence[str]) -> set[str]:
    return {*words, *(f"{one} {two}" for one, two in pairwise(words))}


def _dense(text: str, words: Sequence[str], before: str) -> tuple[float, ...]:
    return (
        1.0,
        min(len(words), 200) / 200,
        float(len(words) < 5),
        float("\n" in text),
        float(text.rstrip().endswith("?")),
        float(bool(before)),
    )


class Weights:
    """int8[SIZE, heads] with one scale for each head, read from a safetensors file."""

    def __init__(self, path: Path = WEIGHTS) -> None:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        self.heads: list[str] = json.loads(header["__metadata__"]["heads"])
        self._scales: list[float] = json.loads(header["__metadata__"]["scales"])
        start, end = header["weights"]["data_offsets"]
        self._rows = memoryview(data)[8 + length + start : 8 + length + end].cast("b")

    def logits(self, found: Features) -> dict[str, float]:
        """Return the logit of each head for these features."""
        count = len(self.heads)
        rows, totals = self._rows, [0.0] * count
        for index, value in found:
            row = rows[index * count : index * count + count]
            for head in range(count):
                totals[head] += row[head] * value
        return {name: total * scale for name, total, scale in zip(self.heads, totals, self._scales, strict=True)}


@lru_cache(maxsize=1)
def packaged() -> Weights:
    """Return the weights of the package."""
    return Weights()
