"""The trained classifier: a few logistic regressions over one feature vector, in plain Python.

The weights lie in `weights.json` beside this file (numbers only, nothing is unpickled) and are built by
`python -m memoryvault.bench.train_miner`.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .features import BUCKETS, Features

FORMAT = 1
WEIGHTS_FILE = Path(__file__).with_name("weights.json")


@dataclass(frozen=True)
class Head:
    """One yes-or-no question about a message."""

    named: Mapping[str, float]
    hashed: tuple[float, ...]
    threshold: float
    """Probability from which the answer is yes; chosen by cross-validation in training."""

    def logit(self, features: Features) -> float:
        total = 0.0
        for name, value in features.items():
            if name.startswith("h:"):
                total += self.hashed[int(name[2:])] * value
            else:
                total += self.named.get(name, 0.0) * value
        return total

    def probability(self, features: Features) -> float:
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.logit(features)))))


@dataclass(frozen=True)
class Classifier:
    """`heads`: durable (a preference or correction), correction (given durable), idea; agent-fix."""

    heads: Mapping[str, Head]

    def __getitem__(self, name: str) -> Head:
        return self.heads[name]

    def dump(self) -> str:
        """As JSON. Hashed weights are 16-bit integers with one scale per head."""
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
    """Raises ValueError when the weights are not of this format."""
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
    """The classifier that comes with the package."""
    return load(WEIGHTS_FILE.read_text(encoding="utf-8"))
