"""Fits `calibration.json` on people that the weights were not trained on: `python -m training.reader.calibrate …`.

The two readers' logits become probabilities by a logistic regression; thresholds are the lowest at which the wanted
precision holds. What is printed for the same people is fitted to them; `judge.jsonl` and people kept back tell more.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
from sklearn.linear_model import LogisticRegression

from memoryvault.index.reading_model import WINDOW_HEADS
from memoryvault.pipelines.reading import reading as types
from memoryvault.pipelines.reading.forms import explicit_form
from memoryvault.pipelines.reading.linear import NO_SENTENCE, NgramReader, length

from .data import LASTING, Message, messages
from .report import curve

SAVE = {"cautious": 0.95, "balanced": 0.90, "eager": 0.82}
PROPOSE = {"cautious": 0.70, "balanced": 0.60, "eager": 0.50}
"""Precision that is wanted on these people, by position of the setting."""
HALF_RIGHT = 0.5
"""What counts of a message that its reader doubted, and took for none: a second reader would take half of such."""
OTHER = 0.7
"""Precision that is wanted of ideas and fixes."""
LEAST_OTHER = 0.15
LEAST_CHOSEN = 8


def holds(m: Message) -> bool:
    return any(item.category in LASTING for item in m.items)


def as_read(m: Message) -> types.Message:
    return types.Message(m.text, m.before, m.sentences)


def message_rows(found: Sequence[Message], answers: Mapping[str, Any] | None) -> list[dict[str, float]]:
    """Values of each message, by name: as `Calibration.message` is given them."""
    words = _words()
    rows = []
    for m in found:
        whole, parts = words.logits(as_read(m))
        form = float(any(explicit_form(s.of(m.text)) for s in m.sentences))
        top = max((part["sentence"] for part in parts), default=NO_SENTENCE)
        if answers is None:
            rows.append({"message": whole["worth"], "sentence": top, "form": form, "length": length(m.text)})
            continue
        row = answers[m.id]
        rows.append(
            {
                "window": max(w[0] for w in row["windows"]),
                "sentence": max((s["worth"] for s in row["sentences"]), default=NO_SENTENCE),
                "high": max((s["tier"][0] - max(s["tier"][1:]) for s in row["sentences"]), default=NO_SENTENCE),
                "words": whole["worth"],
                "words_sentence": top,
                "form": form,
                "length": length(m.text),
            }
        )
    return rows


def _words() -> NgramReader:
    from memoryvault.pipelines.reading.calibration import Calibration

    return NgramReader(own=Calibration({"bias": 0.0}, {"bias": 0.0}, {}))


def sentence_rows(
    found: Sequence[Message], answers: Mapping[str, Any] | None
) -> tuple[list[dict[str, float]], list[bool]]:
    """Values of each sentence of the messages that hold something, and whether it is quoted."""
    words = _words()
    rows, right = [], []
    for m in found:
        if not holds(m):
            continue
        _, parts = words.logits(as_read(m))
        by_number = {s["n"]: s for s in answers[m.id]["sentences"]} if answers else {}
        for number, s in enumerate(m.sentences):
            quoted = any(
                i.category in LASTING
                and min(i.end, s.end) - max(i.start, s.start) > 0.3 * min(i.end - i.start, s.end - s.start)
                for i in m.items
            )
            if answers is None:
                row = {"sentence": parts[number]["sentence"]}
            elif number in by_number:
                form = float(explicit_form(s.of(m.text)) is not None)
                row = {"sentence": by_number[number]["worth"], "words": parts[number]["sentence"], "form": form}
            else:
                continue
            rows.append(row)
            right.append(quoted)
    return rows, right


def fit(rows: Sequence[Mapping[str, float]], right: Sequence[bool]) -> dict[str, float]:
    names = list(rows[0])
    x = numpy.array([[row[name] for name in names] for row in rows])
    model = LogisticRegression(C=0.3, max_iter=1000).fit(x, numpy.array(right, dtype=float))
    return {"bias": float(model.intercept_[0]), **dict(zip(names, map(float, model.coef_[0]), strict=True))}


def probabilities(weights: Mapping[str, float], rows: Sequence[Mapping[str, float]]) -> numpy.ndarray:
    logits = numpy.array([weights["bias"] + sum(weights[name] * value for name, value in row.items()) for row in rows])
    return 1 / (1 + numpy.exp(-logits))


def threshold(p: numpy.ndarray, right: numpy.ndarray, precision: float) -> float:
    """The lowest probability from which on this share is right."""
    order = numpy.argsort(-p, kind="stable")
    share = numpy.cumsum(right[order]) / numpy.arange(1, len(p) + 1)
    good = [k for k in range(LEAST_CHOSEN - 1, len(p)) if share[k] >= precision]
    return float(p[order[good[-1]]]) if good else float(min(0.97, p.max() + 0.01))


def other_rows(found: Sequence[Message], answers: Mapping[str, Any] | None, name: str) -> numpy.ndarray:
    """Probability of an idea or a fix, as the readers give it."""
    if answers is not None:
        place = WINDOW_HEADS.index(name)
        logits = numpy.array([max(w[place] for w in answers[m.id]["windows"]) for m in found])
    else:
        words = _words()
        logits = numpy.array([words.logits(as_read(m))[0][name] for m in found])
    return 1 / (1 + numpy.exp(-logits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=Path, help="labelled prompts of people that were not trained on")
    parser.add_argument("out", type=Path)
    parser.add_argument("--answers", type=Path, help="the model's logits, as training.reader.export writes them")
    parser.add_argument("--ideas", type=Path, help="more labelled messages, for the limits of ideas and fixes")
    parser.add_argument("--ideas-answers", type=Path)
    options = parser.parse_args()
    found = messages(options.labels)
    result = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name, answers in (("words", None), ("model", options.answers)):
        if name == "model" and answers is None:
            continue
        logits = json.loads(answers.read_text()) if answers else None
        rows = message_rows(found, logits)
        right = numpy.array([holds(m) for m in found])
        weights = fit(rows, list(right))
        p = probabilities(weights, rows)
        print(name, {k: round(v, 2) for k, v in weights.items()}, curve(p, found))
        parts, quoted = sentence_rows(found, logits)
        by_sentence = fit(parts, quoted)
        ps = probabilities(by_sentence, parts)
        beside = threshold(ps, numpy.array(quoted), 0.75)
        credit = right + HALF_RIGHT * numpy.array([m.doubtful and not holds(m) for m in found])
        others = {}
        more = messages(options.ideas) if options.ideas else []
        more_logits = json.loads(options.ideas_answers.read_text()) if answers and options.ideas else None
        for what in ("idea", "fix"):
            chance = numpy.r_[other_rows(found, logits, what), other_rows(more, more_logits, what)]
            is_one = numpy.array([any(i.category == what for i in m.items) for m in [*found, *more]])
            others[what] = round(max(LEAST_OTHER, threshold(chance, is_one, OTHER)), 3)
        print(name, others)
        limits = {}
        for position in SAVE:
            limits[position] = {
                "save": round(threshold(p, credit, SAVE[position]), 3),
                "propose": round(threshold(p, credit, PROPOSE[position]), 3),
                "hint": round(threshold(p, credit, 0.35), 3),
                "idea": others["idea"],
                "fix": others["fix"],
                "sentence": round(beside, 3),
            }
        result[name] = {
            "message": {k: round(v, 4) for k, v in weights.items()},
            "sentence": {k: round(v, 4) for k, v in by_sentence.items()},
            "thresholds": limits,
            "apart": result.get(name, {}).get("apart", {"bias": 0.0}),
        }
        for position, its in limits.items():
            for what in ("save", "propose"):
                chosen = p >= its[what]
                plain = numpy.array([any(i.tier == "high" and i.category in LASTING for i in m.items) for m in found])
                print(
                    f"{name} {position} {what} {its[what]}: {chosen.sum()}, precision {right[chosen].mean():.2f}"
                    f" (credit {credit[chosen].mean():.2f}), recall {right[chosen].sum() / right.sum():.2f}"
                    f", of the plain ones {plain[chosen].sum() / plain.sum():.2f}"
                )
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
