"""The weights of the gate (gate.py). Written by training/gate/fit.py; the weight of '' is the constant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GATES: dict[str, dict[str, Any]] = {
    "by_meaning": {
        "weights": {
            "": -0.3512,
            "answers": 0.1703,
            "cosine": 1.7333,
            "related": 0.2535,
            "nearer": -0.123,
            "shared": 0.8116,
            "coverage": 1.1702,
            "share": -1.0134,
            "passage_words": -0.3131,
            "prompt_words": 0.0954,
            "vault": -0.6992,
            "rule": 0.4549,
            "fact": -0.3919,
            "workflow": -0.8607,
            "said_medium": -0.1473,
            "said_high": 0.7252,
            "said_low": -0.7003,
            "surely": 0.8,
            "exact": 1.5,
            "asks": 1.0,
        },
        "thresholds": {
            "cautious": 0.241,
            "balanced": -0.74,
            "eager": -1.546,
        },
    },
    "by_words": {
        "weights": {
            "": -1.392,
            "coverage": 3.7929,
            "share": 1.2152,
            "shared": 1.0268,
            "rarest": -0.504,
            "complete": -0.8656,
            "one_term": -1.5404,
            "passage_words": -0.2701,
            "prompt_words": 0.1866,
            "vault": -0.2938,
            "rule": 0.4316,
            "fact": -0.3787,
            "workflow": -0.7385,
            "said_medium": -0.1254,
            "said_high": 0.6674,
            "said_low": -0.6868,
            "surely": 3.0,
            "exact": 1.5,
        },
        "thresholds": {
            "cautious": -0.058,
            "balanced": -0.436,
            "eager": -0.822,
        },
    },
}
