"""Summarise a reading on a few lines, to choose between trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from sklearn.metrics import average_precision_score

from .data import LASTING, Message


def worth_of(row: Mapping[str, Any]) -> float:
    """Return the logit of a message: the mean of its best window's and its best sentence's."""
    best_window = max(w[0] for w in row["windows"])
    best = max((s["worth"] for s in row["sentences"]), default=best_window)
    return 0.5 * (best_window + best)


def curve(p: numpy.ndarray, found: Sequence[Message]) -> str:
    y = numpy.array([any(i.category in LASTING for i in m.items) for m in found])
    high = numpy.array([any(i.category in LASTING and i.tier == "high" for i in m.items) for m in found])
    order = numpy.argsort(-p, kind="stable")
    right, plain = numpy.cumsum(y[order]), numpy.cumsum(high[order])
    precision = right / numpy.arange(1, len(y) + 1)
    cells = []
    for floor in (0.9, 0.8, 0.7, 0.65, 0.6, 0.5):
        at = numpy.where((precision >= floor) & (numpy.arange(len(y)) >= 9))[0]
        cells.append(
            f"{floor}:{right[at[-1]] / y.sum():.2f}/{plain[at[-1]] / high.sum():.2f}" if len(at) else f"{floor}:-"
        )
    return f"AP {average_precision_score(y, p):.3f} {' '.join(cells)}"


def report(found: Sequence[Message], answers: Mapping[str, Any]) -> str:
    window = numpy.array([max(w[0] for w in answers[m.id]["windows"]) for m in found])
    sentence = numpy.array([max((s["worth"] for s in answers[m.id]["sentences"]), default=-9) for m in found])
    both = numpy.array([worth_of(answers[m.id]) for m in found])
    return (
        "\n  window "
        + curve(window, found)
        + "\n  sentence "
        + curve(sentence, found)
        + "\n  both "
        + curve(both, found)
    )
