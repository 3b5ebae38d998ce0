"""Fit the weights with which statements are compared, and judge them on pairs that nothing else was made with.

`python -m memoryvault.training.statements.fit DATA` writes `pipelines/likeness.json`, as the package has it, and prints
the table of docs/benchmarks/likeness.md; `--judge` only prints. DATA: folder with `memories.jsonl`, statements of real
people; half of them are judged. The second model is the packaged one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy
from sklearn.linear_model import LogisticRegression

from memoryvault.bench.reflection import MODELS
from memoryvault.index.embedder import locate_model
from memoryvault.index.message_reader import load_second
from memoryvault.index.packaged import load_packaged
from memoryvault.pipelines.likeness import WEIGHTS, Compared, Relation, relation, signs, wording_of

from .data import LABELS, labelled, read_examples, real_pairs

REAL_WEIGHT = 2.0
"""Of a real pair, beside those that a model wrote."""
MOST_WRONG = {
    "words": {"same": (0.02, 0.04), "contradicts": (0.02, 0.03)},
    "vectors": {"same": (0.02, 0.04), "contradicts": (0.02, 0.03)},
    "model": {"same": (0.02, 0.04), "contradicts": (0.04, 0.05)},
}
"""Largest share of wrong pairs, of the written and of the real ones, at which a threshold is chosen."""
TARGETS = {
    "S": (1.0, 0.0, 0.0),
    "S?": (0.5, 0.0, 0.5),
    "C": (0.0, 1.0, 0.0),
    "C?": (0.0, 0.5, 0.5),
    "O": (0.0, 0.0, 1.0),
}
DIGITS = 3

Row = tuple[str, str, str]
Comparison = Mapping[str, Compared | None]
Part = tuple[Sequence[Row], Sequence[Comparison]]


def compare(rows: Sequence[Row], *, by_model: bool) -> list[Comparison]:
    """Return, for each pair, what is known of it without and with the models."""
    packaged = load_packaged(locate_model("all-MiniLM-L6-v2", Path()).folder)
    texts = sorted({text for _, *pair in rows for text in pair}, key=len)
    vectors: dict[str, numpy.ndarray] = {}
    for start in range(0, len(texts), 64):
        part = texts[start : start + 64]
        vectors |= dict(zip(part, packaged.encode(part)[0], strict=True))
    second = load_second(MODELS) if by_model else None
    found: list[Comparison] = []
    for _, one, other in rows:
        cosine = float(vectors[one] @ vectors[other])
        known: dict[str, Compared | None] = {"words": None, "vectors": Compared(cosine)}
        if second is not None:
            known["model"] = Compared(cosine, second.compare(one, [other])[0])
        found.append(known)
    return found


def values_of(rows: Sequence[Row], known: Sequence[Comparison], kind: str) -> tuple[list[str], numpy.ndarray]:
    """Return the names of the signs, and their values for each pair."""
    values = [
        signs(wording_of(one), wording_of(other), each[kind]) for (_, one, other), each in zip(rows, known, strict=True)
    ]
    names = list(values[0])
    return names, numpy.array([[row[name] for name in names] for row in values], float)


def targets(rows: Sequence[Row]) -> numpy.ndarray:
    """Return for each pair how far it is the same, a contradiction, neither."""
    written = numpy.eye(3)
    return numpy.array([written[LABELS[name]] if name in LABELS else TARGETS[name] for name, *_ in rows])


def threshold(p: numpy.ndarray, is_so: numpy.ndarray, share: float) -> float:
    """Return the lowest probability at which at most this share of what is not so at all is taken for it."""
    wrong = numpy.sort(p[is_so == 0])[::-1]
    return float(wrong[int(share * len(wrong))]) + 10**-DIGITS


def fitted(parts: Sequence[Part], limits: Part, real: Part, kind: str) -> dict[str, dict]:
    """Fit the weights of one kind to some parts, and choose the thresholds on the limits and on real pairs."""
    rows = [row for part, _ in parts for row in part]
    names, x = values_of(rows, [each for _, known in parts for each in known], kind)
    y = targets(rows)
    weight = numpy.array([1.0 if name in LABELS else REAL_WEIGHT for name, *_ in rows])
    model = LogisticRegression(C=1, max_iter=5000)
    # Each pair counts for all three answers.
    model.fit(numpy.r_[x, x, x], numpy.repeat([0, 1, 2], len(x)), sample_weight=numpy.r_[tuple(weight * y.T)] + 1e-9)
    found = {}
    for number, name in enumerate(("same", "contradicts")):
        least = max(
            threshold(model.predict_proba(values_of(*part, kind)[1])[:, number], targets(part[0])[:, number], share)
            for part, share in zip((limits, real), MOST_WRONG[kind][name], strict=True)
        )
        found[name] = {
            "bias": round(float(model.intercept_[number] - model.intercept_[2]), DIGITS),
            "least": round(least, DIGITS),
            "weights": {
                sign: round(float(weight), DIGITS)
                for sign, weight in zip(names, model.coef_[number] - model.coef_[2], strict=True)
            },
        }
    return found


def judge(rows: Sequence[Row], known: Sequence[Comparison]) -> None:
    total = Counter(name for name, *_ in rows)
    names = sorted(total)
    print(
        f"| compared by | said the same: {', '.join(f'of {total[name]} {name}' for name in names)} | a contradiction |"
    )
    for kind in known[0]:
        found = Counter(
            (name, relation(wording_of(one), wording_of(other), each[kind]))
            for (name, one, other), each in zip(rows, known, strict=True)
        )
        counts = (
            ", ".join(str(found[name, which]) for name in names) for which in (Relation.SAME, Relation.CONTRADICTS)
        )
        print(f"| {kind} | {' | '.join(counts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    memories = options.data / "memories.jsonl"
    if not options.judge:
        # Changes of mind are for the second model: words and vectors tell little of them.
        written = labelled(read_examples("pairs"))
        few, changed = (labelled(read_examples(*names)) for names in (("limits", "tails"), ("changes_limits",)))
        many = (written, compare(written, by_model=False))
        limits, further, real = (
            (rows, compare(rows, by_model=True)) for rows in (few, changed, real_pairs(memories, 0))
        )
        all_limits = ([*limits[0], *further[0]], [*limits[1], *further[1]])
        # The second model was trained on the many.
        weights = {kind: fitted((many, real), limits, real, kind) for kind in ("words", "vectors")}
        weights["model"] = fitted((all_limits, real), all_limits, real, "model")
        WEIGHTS.write_text(json.dumps(weights, indent=1, ensure_ascii=False) + "\n", "utf-8")
    written = (labelled(read_examples(name)) for name in ("judge", "tails_judge", "changes_judge"))
    for rows in (*written, real_pairs(memories, 1)):
        judge(rows, compare(rows, by_model=True))


if __name__ == "__main__":
    main()
