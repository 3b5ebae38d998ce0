"""Turn logits into probabilities, and provide the thresholds for them, by `calibration.json`.

`training/reader` fits the numbers on people that the weights were not trained on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

Eagerness = Literal["cautious", "balanced", "eager"]
EAGERNESS: tuple[Eagerness, ...] = ("cautious", "balanced", "eager")
READ_AGAIN = 0.15
"""Least probability by the small model at which the second one reads a message again."""
_DATA = Path(__file__).with_name("calibration.json")


def eagerness_of(setting: str) -> Eagerness:
    """Return the eagerness of this name; `balanced` for an unknown name."""
    return next((each for each in EAGERNESS if each == setting), "balanced")


@dataclass(frozen=True)
class Thresholds:
    """Least probabilities, 0 to 1, for what becomes of a sentence or message."""

    save: float
    """A statement is saved without asking."""
    propose: float
    """A statement is proposed."""
    hint: float
    """A statement goes to the inbox."""
    idea: float
    fix: float
    sentence: float
    """A sentence besides the best one of its message is a statement, too."""


@dataclass(frozen=True)
class Calibration:
    """Weights and thresholds of one reader."""

    message_weights: Mapping[str, float]
    sentence_weights: Mapping[str, float]
    thresholds: Mapping[str, Thresholds]
    apart_weights: Mapping[str, float] = field(default_factory=lambda: {"bias": 0.0})

    def message(self, logits: Mapping[str, float]) -> float:
        """Return the probability that a message holds something worth remembering."""
        return sigmoid(_total(self.message_weights, logits))

    def sentence(self, logits: Mapping[str, float]) -> float:
        """Return the probability that a sentence says something worth remembering."""
        return sigmoid(_total(self.sentence_weights, logits))

    def apart_logit(self, logits: Mapping[str, float]) -> float:
        """Return a logit below 0 if a passage surely is the person's own words."""
        return _total(self.apart_weights, logits)


def _total(weights: Mapping[str, float], values: Mapping[str, float]) -> float:
    return weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in values.items())


def sigmoid(logit: float) -> float:
    """Return the probability of a logit."""
    return 1 / (1 + math.exp(-max(-40.0, min(40.0, logit))))


@lru_cache(maxsize=4)
def calibration(reader: str) -> Calibration:
    """Return the calibration of the reader of this name. Raises KeyError for an unknown one."""
    own = json.loads(_DATA.read_text("utf-8"))[reader]
    return Calibration(
        own["message"],
        own["sentence"],
        {name: Thresholds(**own["thresholds"][name]) for name in EAGERNESS},
        own["apart"],
    )
