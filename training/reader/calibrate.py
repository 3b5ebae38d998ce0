"""Fit `calibration.json` on people that the weights were not trained on: `python -m training.reader.calibrate …`.

Each part of the people is read with weights of the other parts (`--fold` of ngrams.py and finetune.py). The
readers' logits become probabilities by a logistic regression; thresholds are the lowest at which the wanted precision
holds. With `--mpnet`, changes of all-mpnet-base-v2 that were trained without all these parts (mpnet.py), the messages
that it would read again are calibrated by its answers, too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from sklearn.linear_model import LogisticRegression

from memoryvault.bench.reflection import MODELS
from memoryvault.index.message_reader import load_second
from memoryvault.pipelines.reading import reading as types
from memoryvault.pipelines.reading.calibration import READ_AGAIN, Calibration
from memoryvault.pipelines.reading.forms import explicit_form
from memoryvault.pipelines.reading.linear import NO_SENTENCE, NgramReader, length
from memoryvault.pipelines.reading.ngrams import Weights

from .data import LASTING, Message, parts_of, read_again
from .report import curve

SMALL_SAVE = {"cautious": 0.92, "balanced": 0.86, "eager": 0.78}
SMALL_PROPOSE = {"cautious": 0.68, "balanced": 0.58, "eager": 0.47}
SAVE = {"words": SMALL_SAVE, "model": SMALL_SAVE, "mpnet": {"cautious": 0.93, "balanced": 0.88, "eager": 0.80}}
PROPOSE = {"words": SMALL_PROPOSE, "model": SMALL_PROPOSE, "mpnet": {"cautious": 0.75, "balanced": 0.64, "eager": 0.54}}
"""Wanted precision on these people, by reader and eagerness. A message that either label holds counts as right."""
HINT = 0.40
IDEA, FIX = {"words": 0.3, "model": 0.7}, 0.3
"""Least probabilities. The labelled prompts hold few: at 0.7 two of ten ideas are right, at 0.15 five of 63."""
LEAST_CHOSEN = 20


def holds(m: Message) -> bool:
    return any(item.category in LASTING for item in m.items)


def is_plain(m: Message) -> bool:
    return any(item.category in LASTING and item.tier == "high" for item in m.items)


def as_read(m: Message) -> types.Message:
    return types.Message(m.text, m.before, m.sentences)


def message_rows(
    found: Sequence[Message], answers: Mapping[str, Any] | None, words: NgramReader
) -> list[dict[str, float]]:
    """Return the arguments of `Calibration.message` for each message."""
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
                # The prompts of MORE_LABELS have no words of an agent, and hold more than others.
                "before": float(bool(m.before)),
            }
        )
    return rows


def words_of(weights: Path) -> NgramReader:
    """Return a reader that is only used for its logits."""
    return NgramReader(Weights(weights), Calibration({"bias": 0.0}, {"bias": 0.0}, {}))


def sentence_rows(
    found: Sequence[Message], answers: Mapping[str, Any] | None, words: NgramReader
) -> tuple[list[dict[str, float]], list[bool]]:
    """Return the values of each sentence of the messages that hold something, and whether it is quoted."""
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


def fit(rows: Sequence[Mapping[str, float]], right: numpy.ndarray) -> dict[str, float]:
    """Fit weights to soft labels, 0 to 1: each row counts for both answers."""
    names = list(rows[0])
    x = numpy.array([[row[name] for name in names] for row in rows])
    model = LogisticRegression(C=0.3, max_iter=1000).fit(
        numpy.r_[x, x],
        numpy.r_[numpy.ones(len(x)), numpy.zeros(len(x))],
        sample_weight=numpy.r_[right, 1 - right] + 1e-9,
    )
    return {"bias": float(model.intercept_[0]), **dict(zip(names, map(float, model.coef_[0]), strict=True))}


def probabilities(weights: Mapping[str, float], rows: Sequence[Mapping[str, float]]) -> numpy.ndarray:
    logits = numpy.array([weights["bias"] + sum(weights[name] * value for name, value in row.items()) for row in rows])
    return 1 / (1 + numpy.exp(-logits))


def threshold(p: numpy.ndarray, right: numpy.ndarray, precision: float) -> float:
    """Return the lowest threshold at which this share is right."""
    order = numpy.argsort(-p, kind="stable")
    share = numpy.cumsum(right[order]) / numpy.arange(1, len(p) + 1)
    good = [k for k in range(LEAST_CHOSEN - 1, len(p)) if share[k] >= precision]
    return float(p[order[good[-1]]]) if good else float(min(0.97, p.max() + 0.01))


@dataclass
class Part:
    """A part of the people with the answers of readers that were not trained on them."""

    found: list[Message]
    answers: Mapping[str, Any]
    words: NgramReader


@dataclass(frozen=True)
class Judged:
    """Values of the messages of a part, and what its two readers say of each."""

    rows: Sequence[Mapping[str, float]]
    first: numpy.ndarray
    second: numpy.ndarray
    plain: numpy.ndarray

    @property
    def wanted(self) -> numpy.ndarray:
        return (self.first.astype(float) + self.second) / 2


SIDES = ("first", "second", "plain")


def read_by_mpnet(parts: Sequence[Part], likely: numpy.ndarray, changes: Path) -> list[Part]:
    """Return the likely messages of each part, with the second model's answers."""
    reader = load_second(MODELS, changes).reader
    starts = numpy.cumsum([len(part.found) for part in parts])[:-1]
    result = []
    for part, its in zip(parts, numpy.split(likely, starts), strict=True):
        found = [m for m, is_likely in zip(part.found, its, strict=True) if is_likely]
        answers = {}
        for m in found:
            out = reader.read(m.text, m.before, [(s.start, s.end) for s in m.sentences])
            sentences = [
                {"n": n, "worth": row["sentence"][0], "tier": row["tier"]} for n, row in enumerate(out["sentences"])
            ]
            answers[m.id] = {"windows": [out["window"]], "sentences": sentences}
        result.append(Part(found, answers, part.words))
    return result


def crossed(parts: Sequence[Judged], precision: float, both: int, plain: int) -> str:
    """Describe what is chosen in each part with weights and a limit fitted to the other parts. `both`, `plain`: how
    many there are, read again or not."""
    chosen, right, of_both, of_plain = 0, 0, 0, 0
    for part in parts:
        others = [other for other in parts if other is not part]
        rows = [row for other in others for row in other.rows]
        weights = fit(rows, numpy.concatenate([other.wanted for other in others]))
        either = numpy.concatenate([other.first | other.second for other in others])
        here = probabilities(weights, part.rows) >= threshold(probabilities(weights, rows), either, precision)
        chosen, right = chosen + here.sum(), right + (here & (part.first | part.second)).sum()
        of_both += (here & part.first & part.second).sum()
        of_plain += (here & part.plain).sum()
    return f"{chosen}, precision {right / chosen:.2f}, recall {of_both / both:.2f}, plain {of_plain / plain:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("cv", type=Path, help="folder with ngramsN.safetensors and foldN/held.json of some parts N")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mpnet", type=Path, help="changes.safetensors of mpnet.py")
    parser.add_argument("--folds", type=int, default=4)
    options = parser.parse_args()
    parts = []
    for fold in range(options.folds):
        answers = options.cv / f"fold{fold}" / "held.json"
        if answers.exists():
            _, held = parts_of(options.data, options.folds, fold)
            parts.append(
                Part(held, json.loads(answers.read_text()), words_of(options.cv / f"ngrams{fold}.safetensors"))
            )
    found = [m for part in parts for m in part.found]
    again = {m.id: m for m in read_again(found)}
    labels = {m.id: (holds(m), holds(again.get(m.id, m)), is_plain(m) and is_plain(again.get(m.id, m))) for m in found}
    total = numpy.array(list(labels.values()))
    all_both, all_plain = int((total[:, 0] & total[:, 1]).sum()), int(total[:, 2].sum())
    print(f"{len(found)} messages, {(total[:, 0] | total[:, 1]).sum()} of either reader, {all_both} of both")
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    result: dict[str, Any] = {}
    p = numpy.zeros(0)
    for name in ("words", "model", "mpnet"):
        if name == "mpnet":
            if options.mpnet is None:
                result[name] = known[name]
                continue
            parts = read_by_mpnet(parts, p >= READ_AGAIN, options.mpnet)
        by_people = [
            Judged(
                message_rows(part.found, part.answers if name != "words" else None, part.words),
                *numpy.array([labels[m.id] for m in part.found]).T,
            )
            for part in parts
        ]
        first, second, plain = (numpy.concatenate([getattr(part, of) for part in by_people]) for of in SIDES)
        either, both = first | second, first & second
        rows = [row for part in by_people for row in part.rows]
        weights = fit(rows, numpy.concatenate([part.wanted for part in by_people]))
        p = probabilities(weights, rows)
        here = [m for part in parts for m in part.found]
        print(name, {k: round(v, 2) for k, v in weights.items()}, curve(p, here))
        by_part = [sentence_rows(part.found, part.answers if name != "words" else None, part.words) for part in parts]
        of_sentences = [row for some, _ in by_part for row in some]
        quoted = numpy.array([each for _, some in by_part for each in some])
        by_sentence = fit(of_sentences, quoted.astype(float))
        beside = threshold(probabilities(by_sentence, of_sentences), quoted, 0.75)
        # Of what is read again, more than HINT is right whatever the second model says.
        hint = max(threshold(p, either, HINT), READ_AGAIN if name == "mpnet" else 0.0)
        limits = {
            position: {
                # Words alone save nothing unasked, at any position.
                "save": round(threshold(p, either, SAVE[name][position if name != "words" else "cautious"]), 3),
                "propose": round(threshold(p, either, PROPOSE[name][position]), 3),
                "hint": round(hint, 3),
                "idea": IDEA["words" if name == "words" else "model"],
                "fix": FIX,
                "sentence": round(beside, 3),
            }
            for position in SMALL_SAVE
        }
        result[name] = {
            "message": {k: round(v, 4) for k, v in weights.items()},
            "sentence": {k: round(v, 4) for k, v in by_sentence.items()},
            "thresholds": limits,
            # surroundings.py writes it; whose words they are only the small model says.
            "apart": known.get("model" if name == "mpnet" else name, {}).get("apart", {"bias": 0.0}),
        }
        if name != "words" and len(parts) > 1:
            for what, share in (("save", SAVE[name]["balanced"]), ("propose", PROPOSE[name]["balanced"])):
                said = crossed(by_people, share, all_both, all_plain)
                print(f"{name}, balanced {what}, limits of the other parts: {said}")
        for position, its in limits.items():
            for what in ("save", "propose", "hint"):
                chosen = p >= its[what]
                print(
                    f"{name} {position} {what} {its[what]}: {chosen.sum()}, precision {either[chosen].mean():.2f},"
                    f" recall {both[chosen].sum() / all_both:.2f}, plain {plain[chosen].sum() / all_plain:.2f}"
                )
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
