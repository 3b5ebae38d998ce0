"""Fits the classifier's heads: logistic regression with an L2 penalty, exact and deterministic.

Needs numpy and scipy, which mining itself does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, cg

from .classifier import Head
from .features import Features
from .tokens import BUCKETS

MIN_EXAMPLES = 2
"""Fewest messages with a feature: one that a single message has says nothing about others."""

NEWTON_STEPS = 40
INTERCEPT_VALUE = 5.0
"""The intercept enters as a large constant feature, so that the penalty hardly touches it."""

Vector = npt.NDArray[np.float64]


class Examples:
    """Feature rows of all messages, with their inner products: one matrix for many fits."""

    def __init__(self, rows: Sequence[Features], shown: Sequence[Collection[str]] = ()) -> None:
        """`shown`: all features of each message, which may be more than `rows`; `rows` if not given."""
        seen = Counter(name for names in shown or rows for name in names)
        self._names = sorted(name for name, count in seen.items() if count >= MIN_EXAMPLES)
        column = {name: index for index, name in enumerate(self._names)}
        self._matrix = np.zeros((len(rows), len(self._names)))
        for index, row in enumerate(rows):
            for name, value in row.items():
                if name in column:
                    self._matrix[index, column[name]] = INTERCEPT_VALUE if name == "bias" else value
        self._kernel = self._matrix @ self._matrix.T

    def solve(
        self, inside: Sequence[int], labels: Sequence[bool], weights: Sequence[float], *, strength: float
    ) -> Vector:
        """Dual coefficients float64[len(inside)] of the model fitted on the rows `inside`.

        `weights` are per example; the two classes are balanced on top. `strength` is the inverse of the penalty.
        """
        kernel = self._kernel[np.ix_(inside, inside)]
        target = np.where(np.array(labels), 1.0, -1.0)
        importance = np.array(weights, dtype=float)
        for sign in (1.0, -1.0):
            mass = importance[target == sign].sum()
            if mass:
                importance[target == sign] *= importance.size / 2 / mass
        dual = np.zeros(len(inside))
        for _ in range(NEWTON_STEPS):
            pull = 1.0 / (1.0 + np.exp(np.clip(target * (kernel @ dual), -30, 30)))
            residual = dual / strength - importance * target * pull
            step = _newton_step(kernel, importance * pull * (1 - pull), residual, strength)
            dual += step
            if float(np.abs(step).max()) < 1e-8:
                break
        return dual

    def probabilities(self, rows: Sequence[int], inside: Sequence[int], dual: Vector) -> list[float]:
        """Logits of the rows, by the model that `solve` fitted on `inside`."""
        logits = np.clip(self._kernel[np.ix_(rows, inside)] @ dual, -30, 30)
        answers: list[float] = (1.0 / (1.0 + np.exp(-logits))).tolist()
        return answers

    def head(self, inside: Sequence[int], dual: Vector, threshold: float) -> Head:
        """The same model as weights of features."""
        named: dict[str, float] = {}
        hashed = [0.0] * BUCKETS
        for name, weight in zip(self._names, (self._matrix[list(inside)].T @ dual).tolist(), strict=True):
            if name.startswith("h:"):
                hashed[int(name[2:])] = weight
            else:
                named[name] = weight * (INTERCEPT_VALUE if name == "bias" else 1.0)
        return Head(named, tuple(hashed), threshold)


def _newton_step(kernel: Vector, curvature: Vector, residual: Vector, strength: float) -> Vector:
    """Solve `(diag(curvature) kernel + 1 / strength) step = -residual` by conjugate gradients, which with thousands of
    messages takes a fraction of the time that an elimination takes.

    The system is made symmetric by `step = -strength * residual + root * rest`, root the square root of the curvature.
    """
    root = np.sqrt(curvature)
    size = root.size
    system = LinearOperator(
        (size, size), matvec=lambda z: root * (kernel @ (root * z)) + z / strength, dtype=np.float64
    )
    rest, failed = cg(system, root * (kernel @ (strength * residual)), rtol=1e-5, atol=0.0, maxiter=10 * size)
    if failed:
        raise ArithmeticError(f"no solution after {failed} steps")
    step: Vector = root * rest - strength * residual
    return step
