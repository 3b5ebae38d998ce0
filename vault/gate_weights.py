"""The weights of the gate (gate.py). Written by training/gate/fit.py; the weight of '' is the constant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GATES: dict[str, dict[str, Any]] = {
    "by_meaning": {
        "weights": {
            "": -0.3437,
            "answers": 0.1809,
            "cosine": 2.0203,
            "related": 0.649,
            "nearer": -0.1651,
            "shared": 1.0528,
            "coverage": 0.7712,
            "share": -1.2614,
            "passage_words": -0.3382,
            "prompt_words": 0.0859,
            "vault": -0.7257,
            "surely": 0.8,
            "exact": 1.5,
            "asks": 1.0,
        },
        "thresholds": {
            "cautious": 0.595,
            "balanced": -0.703,
            "eager": -1.753,
        },
    },
    "by_words": {
        "weights": {
            "": -1.4216,
            "coverage": 3.549,
            "share": 0.8435,
            "shared": 1.2645,
            "rarest": -0.4301,
            "complete": -0.7825,
            "one_term": -1.6243,
            "passage_words": -0.3175,
            "prompt_words": 0.1736,
            "vault": -0.2732,
            "surely": 3.0,
            "exact": 1.5,
        },
        "thresholds": {
            "cautious": -0.285,
            "balanced": -0.7,
            "eager": -1.091,
        },
    },
}
