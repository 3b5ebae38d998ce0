"""The fit of the classifier's heads is the optimum of its objective, whatever way it is found."""

from __future__ import annotations

import numpy as np
import pytest

from memoryvault.pipelines.mining.features import Features
from memoryvault.pipelines.mining.fitting import INTERCEPT_VALUE, Examples

STRENGTHS = (0.03, 0.3)


def messages(count: int) -> tuple[list[Features], list[bool], list[float]]:
    """Features, labels and weights of made-up messages: the more of `yes` there is, the likelier the label."""
    draw = np.random.default_rng(7)
    rows: list[Features] = []
    labels: list[bool] = []
    for _ in range(count):
        words = {f"word-{number}": 1.0 for number in draw.integers(0, 60, size=8)}
        yes = float(draw.integers(0, 3))
        rows.append({"bias": 1.0, "yes": yes, **words})
        labels.append(bool(draw.random() < 0.1 + 0.4 * yes))
    return rows, labels, draw.uniform(0.2, 1.0, size=count).tolist()


def design(rows: list[Features]) -> np.ndarray:
    """float64[messages, features], as `Examples` makes it."""
    names = sorted({name for row in rows for name in row})
    return np.array(
        [[(INTERCEPT_VALUE if name == "bias" else row.get(name, 0.0)) for name in names] for row in rows], dtype=float
    )


@pytest.mark.parametrize("strength", STRENGTHS)
def test_nothing_near_the_solution_is_better(strength: float) -> None:
    rows, labels, weights = messages(240)
    everything = range(len(rows))
    matrix, target = design(rows), np.where(labels, 1.0, -1.0)
    dual = Examples(rows).solve(everything, labels, weights, strength=strength)
    importance = np.array(weights)
    for sign in (1.0, -1.0):
        importance[target == sign] *= len(rows) / 2 / importance[target == sign].sum()
    weight = matrix.T @ dual
    slope = weight / strength - matrix.T @ (importance * target / (1.0 + np.exp(target * (matrix @ weight))))
    assert np.abs(slope).max() < 1e-5, "the gradient of the penalised loss vanishes"
    assert np.abs(weight).max() > 0.1, "it has learnt something"


def test_it_tells_the_classes_apart() -> None:
    rows, labels, weights = messages(240)
    examples = Examples(rows)
    learnt, asked = range(160), range(160, 240)
    dual = examples.solve(learnt, labels[:160], weights[:160], strength=0.3)
    answers = examples.probabilities(asked, learnt, dual)
    mean = {
        truth: np.mean([p for p, yes in zip(answers, labels[160:], strict=True) if yes is truth])
        for truth in (True, False)
    }
    assert mean[True] > mean[False] + 0.1
