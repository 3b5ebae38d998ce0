"""The weights of the gate (gate.py). Written by training/gate/fit.py; the weight of '' is the constant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GATES: dict[str, dict[str, Any]] = {
    "by_meaning": {
        "weights": {
            "": -1.2237,
            "answers": 0.1766,
            "cosine": 1.9795,
            "related": 0.7669,
            "nearer": -0.1979,
            "shared": 1.0469,
            "coverage": 0.8566,
            "share": -0.9899,
            "passage_words": -0.1266,
            "prompt_words": 0.1511,
            "preference": 0.7196,
            "correction": 0.6192,
            "fact": -0.2344,
            "personal": 0.1955,
            "vault": -0.3894,
            "surely": 0.3,
            "asks": 1.0,
        },
        "thresholds": {
            "cautious": 0.693,
            "balanced": 0.009,
            "eager": -0.612,
        },
    },
    "by_words": {
        "weights": {
            "": -1.9547,
            "coverage": 3.8944,
            "share": 1.0046,
            "shared": 1.5253,
            "rarest": -0.7386,
            "complete": -1.1462,
            "one_term": -1.7263,
            "passage_words": -0.1805,
            "prompt_words": 0.1933,
            "preference": 0.7744,
            "correction": 0.5984,
            "fact": -0.1595,
            "personal": 0.1549,
            "vault": -0.3074,
            "surely": 3.0,
        },
        "thresholds": {
            "cautious": -0.168,
            "balanced": -0.594,
            "eager": -0.989,
        },
    },
}
