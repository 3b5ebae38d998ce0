"""Train the linear reader of hashed n-grams: `python -m training.reader.ngrams DATA`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from memoryvault.pipelines.reading import ngrams

from .data import (
    CATEGORIES,
    CHANNELS,
    EXAMPLES,
    LASTING,
    OWN_MESSAGES,
    Message,
    for_training,
    ideas_and_fixes,
    messages,
    parts_of,
)
from .report import curve

C = 5.0


def matrix(pairs: Sequence[tuple[str, str]]) -> csr_matrix:
    rows, columns, values = [], [], []
    for number, (text, before) in enumerate(pairs):
        for index, value in ngrams.features(text, before):
            rows.append(number)
            columns.append(index)
            values.append(value)
    return csr_matrix((values, (rows, columns)), shape=(len(pairs), ngrams.SIZE))


def fit(x: csr_matrix, y: numpy.ndarray, weight: numpy.ndarray, c: float = C) -> numpy.ndarray:
    """Fit a logistic regression to soft targets: each example counts for both answers."""
    both = vstack([x, x])
    answers = numpy.r_[numpy.ones(len(y)), numpy.zeros(len(y))]
    weights = numpy.r_[y * weight, (1 - y) * weight]
    use = weights > 0
    model = LogisticRegression(C=c, max_iter=60, tol=1e-3, fit_intercept=False)
    return model.fit(both[use], answers[use], sample_weight=weights[use]).coef_[0]


def train(found: Sequence[Message]) -> dict[str, numpy.ndarray]:
    x = matrix([(m.text, m.before) for m in found])
    weight = numpy.array([m.weight for m in found])
    heads = {"worth": fit(x, numpy.array([m.worth(LASTING) for m in found]), weight)}
    for name in ("idea", "fix"):
        heads[name] = fit(x, numpy.array([float(any(i.category == name for i in m.items)) for m in found]), weight)
    parts = [
        (
            m,
            s,
            [
                i
                for i in m.items
                if min(i.end, s.end) - max(i.start, s.start) > 0.3 * min(i.end - i.start, s.end - s.start)
            ],
        )
        for m in found
        for s in m.sentences
    ]
    xs = matrix([(s.of(m.text), m.before) for m, s, _ in parts])
    ws = numpy.array([m.weight / len(m.sentences) ** 0.5 for m, _, _ in parts])
    y = numpy.array([float(any(i.category in LASTING for i in items)) for _, _, items in parts])
    heads["sentence"] = fit(xs, y, ws)
    held = [k for k, (_, _, items) in enumerate(parts) if items]
    xh, wh = xs[held], ws[held]
    first = [parts[k][2][0] for k in held]
    for category in CATEGORIES:
        heads[f"category:{category}"] = fit(xh, numpy.array([float(i.category == category) for i in first]), wh)
    for channel in CHANNELS:
        use = [k for k, i in enumerate(first) if i.channel]
        heads[f"channel:{channel}"] = fit(
            xh[use], numpy.array([float(first[k].channel == channel) for k in use]), wh[use]
        )
    use = [k for k, i in enumerate(first) if i.scope]
    heads["personal"] = fit(xh[use], numpy.array([float(first[k].scope == "personal") for k in use]), wh[use])
    return heads


def save(heads: dict[str, numpy.ndarray], path: Path) -> None:
    from safetensors.numpy import save_file

    names = list(heads)
    scales = [float(numpy.abs(heads[name]).max()) / 127 or 1.0 for name in names]
    rows = numpy.stack(
        [numpy.round(heads[name] / scale).astype(numpy.int8) for name, scale in zip(names, scales, strict=True)], axis=1
    )
    save_file(
        {"weights": numpy.ascontiguousarray(rows)}, path, {"heads": json.dumps(names), "scales": json.dumps(scales)}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--extra", type=Path, nargs="*", default=(*OWN_MESSAGES, EXAMPLES / "openings.jsonl"))
    parser.add_argument("--extra-weight", type=float, default=0.7)
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--fold", type=int, help="leave this part of the people out and read it; without it, all train")
    parser.add_argument("--out", type=Path, default=ngrams.WEIGHTS)
    options = parser.parse_args()
    found, held = parts_of(options.data, options.folds, options.fold)
    found = for_training(found)
    for path in options.extra:
        found += messages(path, {}, options.extra_weight)
    found += ideas_and_fixes(weight=options.extra_weight)
    save(train(found), options.out)
    if not held:
        return
    weights = ngrams.Weights(options.out)
    p = numpy.array([weights.logits(ngrams.features(m.text, m.before))["worth"] for m in held])
    s = numpy.array(
        [
            max((weights.logits(ngrams.features(x.of(m.text), m.before))["sentence"] for x in m.sentences), default=-9)
            for m in held
        ]
    )
    print("message", curve(p, held))
    print("sentence", curve(s, held))
    print("both", curve(p + s, held))


if __name__ == "__main__":
    main()
