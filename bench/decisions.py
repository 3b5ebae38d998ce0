"""Measure whether the user's decisions make the next proposals better, with labels of prompts as decisions.

Usage: python -m memoryvault.bench.decisions PROMPTS.jsonl ANSWERS.jsonl

PROMPTS: one message on each line, with `id`, `person`, `session`, `seq`, `text` and `items` (each with a `category`).
ANSWERS: `id` and `p` for each message: the probability that it is worth remembering, from a model that was not trained
on its person. Each person's messages are taken in time order; those above the threshold are proposed and decided.
Prints the precision at the recall that the threshold gives without decisions, with a 90 % interval of the difference
(people drawn with replacement).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy

from ..index.embedder import load_embedder
from ..pipelines.learned import NEAR_DISMISSED, learned_shift, shifted

LASTING = frozenset({"preference", "correction", "fact", "workflow"})
RECALLS = (0.4, 0.5, 0.6)
PARTS = ("dismissed", "approved", "share")
DRAWS = 200
Floats = numpy.ndarray


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    options = parser.parse_args(argv)
    rows = [json.loads(line) for line in options.prompts.read_text("utf-8").splitlines()]
    rows.sort(key=lambda row: (row["person"], row["session"], row["seq"]))
    answers = {row["id"]: float(row["p"]) for row in map(json.loads, options.answers.read_text("utf-8").splitlines())}
    given = numpy.array([min(max(answers.get(row["id"], 0.0), 1e-4), 1 - 1e-4) for row in rows])
    right = numpy.array([any(item["category"] in LASTING for item in row["items"]) for row in rows])
    embedder = load_embedder(options.model, models_folder=Path())
    packed = [vector for row in rows for vector in embedder.encode([row["text"][:600]]).vectors]
    vectors = numpy.stack([numpy.frombuffer(vector, "<f4") for vector in packed])
    people: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        people.setdefault(row["person"], []).append(place)
    for recall in RECALLS:
        ranked = numpy.sort(given)[::-1]
        place = _place(given, right, recall)
        threshold, usual = float(ranked[place]), precision_at(given, right, recall)
        print(f"recall {recall}: precision {usual:.3f} without decisions")
        for parts in (*[(part,) for part in PARTS], PARTS):
            learned = simulate(given, right, vectors, list(people.values()), threshold, usual, parts)
            low, high = interval(given, learned, right, list(people.values()), recall)
            found = precision_at(learned, right, recall)
            print(f"  with {' + '.join(parts)}: {found:.3f}, difference {low:+.3f} to {high:+.3f}")
    return 0


def simulate(
    given: Floats,
    right: Floats,
    vectors: Floats,
    people: Sequence[Sequence[int]],
    threshold: float,
    usual: float,
    parts: Sequence[str] = PARTS,
) -> Floats:
    """Return the probabilities after the decisions on earlier proposals."""
    learned = given.copy()
    for messages in people:
        approved: list[int] = []
        dismissed: list[int] = []
        for place in messages:
            nearest = max((float(vectors[other] @ vectors[place]) for other in approved), default=None)
            counts = (len(approved), len(dismissed)) if "share" in parts else (0, 0)
            shift = learned_shift(*counts, nearest if "approved" in parts else None, usual)
            learned[place] = shifted(float(given[place]), shift)
            is_near = any(float(vectors[other] @ vectors[place]) >= NEAR_DISMISSED for other in dismissed)
            if "dismissed" in parts and is_near:
                learned[place] *= 1e-4
            if learned[place] >= threshold:
                (approved if right[place] else dismissed).append(place)
    return learned


def precision_at(scores: Floats, right: Floats, recall: float) -> float:
    place = _place(scores, right, recall)
    return float(right[numpy.argsort(-scores, kind="stable")][: place + 1].mean())


def interval(
    before: Floats, after: Floats, right: Floats, people: Sequence[Sequence[int]], recall: float
) -> tuple[float, float]:
    """Return the 5th and 95th percentile of the difference in precision."""
    chance = numpy.random.default_rng(1)
    differences = []
    for _ in range(DRAWS):
        drawn = numpy.concatenate([people[at] for at in chance.integers(0, len(people), len(people))])
        one, other = (precision_at(scores[drawn], right[drawn], recall) for scores in (before, after))
        differences.append(other - one)
    low, high = numpy.quantile(differences, [0.05, 0.95])
    return float(low), float(high)


def _place(scores: Floats, right: Floats, recall: float) -> int:
    """Return the rank at which this recall is reached."""
    found = numpy.cumsum(right[numpy.argsort(-scores, kind="stable")])
    return int(numpy.searchsorted(found / found[-1], recall))


if __name__ == "__main__":
    raise SystemExit(main())
