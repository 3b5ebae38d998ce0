"""The trained classifier: a few logistic regressions over one feature vector, in plain Python.

The weights are in `weights.json` next to this file (numbers only, nothing is unpickled) and are built by
`python -m memoryvault.bench.train_miner`.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import math
import operator
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cues import CUES
from .features import EXPLICITLY, NGRAM_VALUE, STATES_RULE, Features, Gain, Shape
from .sentence_scan import BITS, CUE_BITS
from .tokens import BUCKETS

FORMAT = 1
WEIGHTS_FILE = Path(__file__).with_name("weights.json")


class _Weights(dict[str, float]):
    def __missing__(self, name: str) -> float:
        return 0.0


class _ByteSums(dict[int, float]):
    """Sums of the weights of the bits in one byte of a bit set, computed once for each value of the byte."""

    def __init__(self, counts: Sequence[float]) -> None:
        super().__init__()
        self._counts = counts

    def __missing__(self, byte: int) -> float:
        self[byte] = found = math.fsum(count for place, count in enumerate(self._counts) if byte >> place & 1)
        return found


_BYTES = (max(BITS.values()).bit_length() + 7) // 8
"""Number of bytes of all bits that a sentence may show."""


def _by_bytes(counts: Mapping[int, float]) -> Sequence[_ByteSums]:
    """Weights by bit, to sum many bits: byte by byte takes a quarter of the time of bit by bit."""
    return [_ByteSums([counts.get(1 << (8 * byte + place), 0.0) for place in range(8)]) for byte in range(_BYTES)]


def _bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


@dataclass(frozen=True)
class Head:
    """A binary classifier of messages."""

    named: Mapping[str, float]
    hashed: tuple[float, ...]
    threshold: float
    """Least probability of a positive answer; chosen by cross-validation in training."""

    @functools.cached_property
    def weights(self) -> Mapping[str, float]:
        """Weights of named features and n-grams, by name; 0 for any other."""
        return _Weights({**self.named, **{f"h:{bucket}": weight for bucket, weight in enumerate(self.hashed)}})

    @functools.cached_property
    def limit(self) -> float:
        """The threshold as a logit."""
        return math.log(self.threshold / (1.0 - self.threshold)) if 0.0 < self.threshold < 1.0 else math.inf

    @functools.cached_property
    def gains(self) -> Sequence[Gain]:
        """Cues with a weight, the largest absolute value first."""
        gains = []
        for cue in CUES:
            if cue in self.named or f"first {cue}" in self.named:
                shown = self.named.get(cue, 0.0)
                first = shown + self.named.get(f"first {cue}", 0.0)
                gains.append(Gain(cue, CUE_BITS[cue], max(0.0, shown), max(0.0, shown, first), shown, first))
        return sorted(gains, key=lambda gain: -max(abs(gain.shown), abs(gain.first)))

    @functools.cached_property
    def cues(self) -> int:
        """Bits of the cues with a weight."""
        return functools.reduce(operator.or_, (gain.bit for gain in self.gains), 0)

    @functools.cached_property
    def _most_anywhere(self) -> Sequence[_ByteSums]:
        return _by_bytes({gain.bit: gain.anywhere for gain in self.gains})

    @functools.cached_property
    def _most_behind(self) -> Sequence[_ByteSums]:
        return _by_bytes({gain.bit: gain.behind for gain in self.gains})

    def most_by_cues(self, possible: int, in_first: int) -> float:
        """Most that cues with these bits may add if the first sentence may show those of `in_first`."""
        first = possible & in_first
        most: float = sum(map(operator.getitem, self._most_anywhere, _bytes(first)))
        if possible != first:
            most += sum(map(operator.getitem, self._most_behind, _bytes(possible ^ first)))
        return most

    @functools.cached_property
    def most_by_look(self) -> float:
        """Most that the feature "looks pasted" may add."""
        return max(0.0, self.named.get("looks pasted", 0.0))

    @functools.cached_property
    def most_by_forms(self) -> float:
        """Most that the forms of sentences may add."""
        forms = (weight for name, weight in self.named.items() if name == STATES_RULE or name.startswith(EXPLICITLY))
        return sum(max(0.0, weight) for weight in forms)

    @functools.cached_property
    def _heaviest(self) -> Sequence[float]:
        """Sums of the heaviest n-grams, by their number."""
        heaviest = sorted((weight for weight in self.hashed if weight > 0.0), reverse=True)
        return [0.0, *itertools.accumulate(NGRAM_VALUE * weight for weight in heaviest)]

    def most_by_ngrams(self, words: int) -> float:
        """Most that the n-grams of this number of words may add: each word, and each with the one before it."""
        return self._heaviest[min(2 * words, len(self._heaviest) - 1)]

    @functools.cached_property
    def _by_shape(self) -> dict[Shape, float]:
        return {}

    def of_shape(self, shape: Shape) -> float:
        """Logit of a message's shape, cached: there are few, and they recur."""
        known = self._by_shape.get(shape)
        if known is None:
            known = self._by_shape[shape] = self.logit(shape.features())
        return known

    def of_ngrams(self, buckets: Iterable[int]) -> float:
        """Logit of n-grams in these buckets."""
        hashed = self.hashed
        return NGRAM_VALUE * sum([hashed[bucket] for bucket in buckets])  # a generator takes half as long again

    def logit(self, features: Features, buckets: Iterable[int] = ()) -> float:
        """Logit of the features and of n-grams in `buckets`. `fsum` makes it independent of their order."""
        hashed = self.hashed
        named = map(operator.mul, map(self.weights.__getitem__, features), features.values())
        return math.fsum([*named, *[hashed[bucket] * NGRAM_VALUE for bucket in buckets]])

    def probability(self, features: Features, buckets: Iterable[int] = ()) -> float:
        return _probability(self.logit(features, buckets))


def _probability(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


@dataclass(frozen=True)
class Classifier:
    """The heads by name: durable (a preference or correction), correction (given durable), idea, agent-fix."""

    heads: Mapping[str, Head]

    def __getitem__(self, name: str) -> Head:
        return self.heads[name]

    def dump(self) -> str:
        """Serialise as JSON. Hashed weights are 16-bit integers with one scale per head."""
        heads: dict[str, Any] = {}
        for name, head in self.heads.items():
            scale = max((abs(weight) for weight in head.hashed), default=0.0) / 32767 or 1.0
            packed = struct.pack(f"<{BUCKETS}h", *(round(weight / scale) for weight in head.hashed))
            heads[name] = {
                "threshold": round(head.threshold, 4),
                "scale": float(f"{scale:.6g}"),
                "hashed": base64.b64encode(packed).decode(),
                "named": {key: round(weight, 4) for key, weight in sorted(head.named.items()) if round(weight, 4)},
            }
        return json.dumps({"format": FORMAT, "buckets": BUCKETS, "heads": heads}, indent=1, ensure_ascii=False) + "\n"


def load(text: str) -> Classifier:
    """Load a classifier from JSON. Raises ValueError for any other format."""
    data = json.loads(text)
    if data.get("format") != FORMAT or data.get("buckets") != BUCKETS:
        raise ValueError("the miner's weights are of another version: rebuild them with bench/train_miner.py")
    heads: dict[str, Head] = {}
    for name, head in data["heads"].items():
        packed = struct.unpack(f"<{BUCKETS}h", base64.b64decode(head["hashed"]))
        heads[name] = Head(head["named"], tuple(value * head["scale"] for value in packed), head["threshold"])
    return Classifier(heads)


@functools.cache
def packaged() -> Classifier:
    """The classifier of the package, loaded once."""
    return load(WEIGHTS_FILE.read_text(encoding="utf-8"))
