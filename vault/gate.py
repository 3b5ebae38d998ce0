"""The gate: whether a prompt needs an entry. Light module: hooks import it.

A logistic regression over plain features of the pair, trained on what later prompts of real people needed of their
earlier words (training/gate, docs/benchmarks/recall.md). One set of weights is for the recall service, and one, of the
features that need no vectors, for a search by words alone.
"""

from __future__ import annotations

from math import log, log1p

from .gate_weights import GATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

EAGERNESS = ("cautious", "balanced", "eager")
"""The values of the setting `recall.eagerness`."""
BY_MEANING, BY_WORDS = "by_meaning", "by_words"
KIND_GROUPS = {
    **dict.fromkeys(("preferences", "preference", "correction", "convention"), "rule"),
    "fact": "fact",
    "workflow": "workflow",
}
"""The feature of each kind of entry; of other kinds nothing was learned."""
SHORT, LONG = 6, 16
"""Numbers of significant words of a prompt about one thing, and about several."""
CONFIDENCES = ("high", "medium", "low")
RARE = 0.5
"""Rarity that at least one word must have, if a passage with all words of a prompt is to count as its answer."""
PROMPT_TERMS = 6
"""Most terms, the rarest first, that make up a prompt's weight: a longer prompt must not be harder to answer."""


def rarity(count: int, total: int) -> float:
    """Return the rarity of a term that `count` of `total` passages have: 1 if none has it, less the more have it."""
    return log(1 + total / max(count, 0.5)) / log(1 + max(total, 1) / 0.5)


def word_features(
    terms: Sequence[tuple[Collection[str], float]], passage: Collection[str], rivals: int
) -> dict[str, float]:
    """Return the features of a prompt and a passage that need no vectors.

    `terms`: of each significant word of the prompt its stems (more than one where it may be misspelt) and its rarity;
    `passage`: the distinct stems of the passage's significant words; `rivals`: entries that could come.
    """
    shared = [weight for stems, weight in terms if any(stem in passage for stem in stems)]
    heaviest = sum(sorted([weight for _, weight in terms], reverse=True)[:PROMPT_TERMS])
    found = sum(shared)
    return {
        "coverage": min(found / heaviest, 1.0) if heaviest else 0.0,
        "share": min(len(shared) / len(passage), 1.0) if passage else 0.0,
        "shared": log1p(found),
        "rarest": max(shared, default=0.0),
        "complete": float(bool(terms) and len(shared) == len(terms)),
        "one_term": float(len(terms) == 1),
        "passage_words": log1p(len(passage)),
        "prompt_words": log1p(len(terms)),
        "vault": log1p(rivals),
    }


def exact(features: Mapping[str, float], *, is_one_word: bool) -> float:
    """Return 1 for a passage with all words of a prompt, one of them rare; else 0, and for a prompt of one word."""
    return float(bool(features["complete"]) and features["rarest"] >= RARE and not is_one_word)


def note_features(kind: str | None, confidence: str | None) -> dict[str, float]:
    """Return the features of the entry itself: the kind of statement, and how plainly it was made; only known ones.

    `kind`, `confidence`: the properties of the note, in any case.
    """
    known: dict[str, float] = {}
    if group := KIND_GROUPS.get((kind or "").lower()):
        known[group] = 1.0
    if (said := (confidence or "").lower()) in CONFIDENCES:
        known[f"said_{said}"] = 1.0
    return known


def surely(features: Mapping[str, float]) -> float:
    """Return by how much a passage is beyond a chance likeness to the prompt; 0 where it is not.

    By meaning that is one unit of log-odds that it answers (`answers`), by words half of the prompt's weight. It counts
    in full for a short prompt, about one thing, and half for a long one, to which much is near.
    """
    if "answers" in features:
        return max(features["answers"] - 1.0, 0.0) * (1.0 + _shortness(features["prompt_words"])) / 2.0
    return 0.0 if features["one_term"] else max(features["coverage"] - 0.5, 0.0)


def _shortness(prompt_words: float) -> float:
    """Return 1 for a prompt of SHORT significant words or fewer, 0 for one of LONG, from the feature of that name."""
    return max(0.0, min(1.0, (log1p(LONG) - prompt_words) / (log1p(LONG) - log1p(SHORT))))


def log_odds(gate: str, features: Mapping[str, float]) -> float:
    """Return the log-odds that the prompt needs the entry. `gate`: BY_MEANING or BY_WORDS."""
    weights: Mapping[str, float] = GATES[gate]["weights"]
    known = {**features, "surely": surely(features)}
    return sum([weight * known.get(name, 0.0) for name, weight in weights.items() if name], weights[""])


def threshold(gate: str, eagerness: str) -> float:
    """Return the log-odds that an entry must reach to be given with a prompt."""
    return float(GATES[gate]["thresholds"][eagerness])
