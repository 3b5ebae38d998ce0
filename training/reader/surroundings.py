"""Train the models that separate a person's own words from another's.

`python -m memoryvault.training.reader.surroundings DATA`. Three linear models judge a passage: by hashed words and the
layout, by the states of the small reading model, and by those of the second one. Their blends go into
`calibration.json`. DATA holds the labelled prompts, whose quotes a person typed. Deterministic. Prints how many
passages of left-out messages and people are recognised at several limits. 25 minutes on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from memoryvault.bench.reflection import MODELS
from memoryvault.index import message_reader, reading_model
from memoryvault.pipelines.reading import calibration, surroundings
from memoryvault.pipelines.reading.sentences import Sentence, sentences
from memoryvault.sources.transcripts.whose_words import own_text, pasted_ranges
from memoryvault.vault.turn import blanked

from .data import Message, messages, more_messages, read_rows
from .ngrams import save

EXAMPLES = Path(__file__).parent / "examples" / "apart.jsonl"
FOLDS = 5
REAL_WEIGHT = 0.3
"""Weight of a passage of a real prompt; one of our own examples weighs 1."""
C_WORDS, C_MODEL, C_SECOND, C_BLEND = 20.0, 0.003, 0.001, 1.0
NAMES = ("words", "model", "second")
"""The three models, in the order of the readers of `calibration.json` that have them."""
STRICT = 0.5
"""Logit below even odds at which words count as the person's own, since another's must not be saved."""
LONGEST_RULE = 160
SHORT_PROMPT, MOST_BESIDE = 160, 400
"""Characters, and number, of prompts beside which a rule is put."""


@dataclass(frozen=True)
class Passage:
    """A labelled passage [start, end) of a message."""

    text: str
    start: int
    end: int
    before: str
    is_apart: bool
    weight: float
    group: str
    """Passages of one group are in one fold."""
    is_plain: bool = True
    """Whether it is an example as written, on which the models are judged, and no variant of one."""


def ours(rows: Sequence[Any], rules: Sequence[str], agents: Sequence[str]) -> Iterator[Passage]:
    """Yield our examples as they are, and again with another rule and an agent's words before them, so that the models
    learn from the surroundings and not from the rule."""
    draw = random.Random(1)
    for row in rows:
        rule = row["rule"]
        yield from _passage(row["text"], rule, "", row["label"], 1.0, rule, True)
        other = _dressed(draw.choice(rules), rule)
        text = row["text"].replace(rule, other, 1)
        yield from _passage(text, other, draw.choice(agents), row["label"], 1.0, rule, False)


def _dressed(rule: str, like: str) -> str:
    """The rule with capital and stop as another one has them."""
    first = rule[:1].upper() if like[:1].isupper() else rule[:1].lower()
    rule = first + rule[1:].rstrip(".!")
    return rule + (like[-1] if like.endswith((".", "!")) else "")


def real(prompts: Sequence[Message]) -> Iterator[Passage]:
    """Yield what people typed and a reader quoted."""
    for m in prompts:
        for item in m.items:
            quote = m.text[item.start : item.end]
            yield from _passage(m.text, quote, m.before, "typed", REAL_WEIGHT, m.person, False)


def beside(prompts: Sequence[Message], rules: Sequence[str]) -> Iterator[Passage]:
    """Yield short prompts of people without a quote, each with a rule after or before it."""
    draw = random.Random(3)
    short = [m for m in prompts if not m.items and 0 < len(m.text.strip()) <= SHORT_PROMPT]
    for m in draw.sample(short, min(MOST_BESIDE, len(short))):
        rule, text = draw.choice(rules), m.text.strip()
        gap = draw.choice(("\n\n", "\n\n", "\n", ". ", ", "))
        whole = f"{text}{gap}{rule}" if draw.random() < 0.75 else f"{rule}{gap}{text}"
        yield from _passage(whole, rule, m.before, "typed", REAL_WEIGHT, m.person, False)


def alone(rules: Sequence[str]) -> Iterator[Passage]:
    """Yield each rule as a message of its own."""
    for number, rule in enumerate(rules):
        yield from _passage(rule, rule, "", "typed", REAL_WEIGHT, f"alone:{number}", False)


def _passage(
    text: str, rule: str, before: str, label: str, weight: float, group: str, is_plain: bool
) -> Iterator[Passage]:
    text, rule = own_text(text), rule.strip()
    start = text.find(rule)
    if start >= 0 and rule:
        yield Passage(text, start, start + len(rule), before, label == "apart", weight, group, is_plain)


class _Keeping(reading_model.ApartHead):
    """Stands in for the head, and keeps its input."""

    def __init__(self) -> None:
        super().__init__({})
        self.rows: list[numpy.ndarray] = []

    def __call__(self, states: Any, window: reading_model.Window) -> Any:
        found = reading_model.surroundings(states, window)
        self.rows += list(found)
        return found[:, :1]


class Model:
    """A reading model's view of passages: of the small one, or of the second one."""

    def __init__(self, is_second: bool) -> None:
        self._keeping = _Keeping()
        if is_second:
            self._reader = message_reader.load_second(MODELS, apart=self._keeping).reader
        else:
            self._reader = message_reader.MessageReader(Path()).load(apart=self._keeping)

    def rows(self, passage: Passage) -> numpy.ndarray:
        """float16[n, …] of the sentences of a passage; none where it is pasted by its form."""
        text = blanked(passage.text, pasted_ranges(passage.text))
        parts = sentences(text)
        self._keeping.rows = []
        if not parts:
            return numpy.zeros((0, 0), numpy.float16)
        self._reader.read(text, passage.before, [(part.start, part.end) for part in parts])
        found = [row for row, part in zip(self._keeping.rows, parts, strict=False) if _is_of(part, passage)]
        return numpy.array(found, numpy.float16)


def _is_of(part: Sentence, passage: Passage) -> bool:
    shared = min(part.end, passage.end) - max(part.start, passage.start)
    return shared > 0.3 * min(part.end - part.start, passage.end - passage.start)


def seen(found: Sequence[Passage], is_second: bool, cache: Path | None) -> list[numpy.ndarray]:
    """Return `Model.rows` of each passage, from the cache where it has them."""
    cache = cache and cache.with_name(f"{cache.stem}{'_second' * is_second}.npz")
    keys = [hashlib.sha256(repr((p.text, p.start, p.end, p.before)).encode()).hexdigest() for p in found]
    known: dict[str, numpy.ndarray] = {}
    if cache and cache.exists():
        with numpy.load(cache) as kept:
            parts = numpy.split(kept["rows"], numpy.cumsum(kept["counts"])[:-1])
            known = dict(zip(kept["keys"].tolist(), parts, strict=True))
    model = None
    for key, passage in zip(keys, found, strict=True):
        if key not in known:
            model = model or Model(is_second)
            known[key] = model.rows(passage)
    if cache and model:
        counts = [len(rows) for rows in known.values()]
        rows = numpy.concatenate([rows for rows in known.values() if len(rows)])
        numpy.savez(cache, rows=rows, counts=counts, keys=list(known))
    return [known[key] for key in keys]


def matrix(found: Sequence[Passage]) -> csr_matrix:
    rows, columns, values = [], [], []
    for number, passage in enumerate(found):
        for index, value in surroundings.features(passage.text, passage.start, passage.end):
            rows.append(number)
            columns.append(index)
            values.append(value)
    return csr_matrix((values, (rows, columns)), shape=(len(found), surroundings.SIZE))


def fit(x: Any, is_apart: numpy.ndarray, weight: numpy.ndarray, c: float) -> LogisticRegression:
    """Fit a logistic regression in which both labels have the same total weight."""
    weight = numpy.where(is_apart, weight / weight[is_apart].sum(), weight / weight[~is_apart].sum())
    model = LogisticRegression(C=c, max_iter=500, fit_intercept=False)
    return model.fit(x, is_apart, sample_weight=weight * len(weight) / 2)


@dataclass(frozen=True)
class Head:
    """A linear model over a reading model's states: weights, and the bias last."""

    weights: numpy.ndarray

    def logits(self, sentences_of: Sequence[numpy.ndarray]) -> numpy.ndarray:
        """float[n] of each passage: that of its sentence that seems most another's."""
        found = [rows @ self.weights[:-1] + self.weights[-1] for rows in sentences_of]
        return numpy.array([each.max() if len(each) else 0.0 for each in found])


def train_words(found: Sequence[Passage], x: csr_matrix) -> numpy.ndarray:
    """Return the weights of the hashed words."""
    is_apart = numpy.array([p.is_apart for p in found])
    return fit(x, is_apart, numpy.array([p.weight for p in found]), C_WORDS).coef_[0]


def train_head(found: Sequence[Passage], sentences_of: Sequence[numpy.ndarray], c: float) -> Head:
    is_apart = numpy.array([p.is_apart for p in found])
    weight = numpy.array([p.weight for p in found])
    owner = numpy.array([k for k, rows in enumerate(sentences_of) for _ in rows])
    rows = numpy.concatenate(list(sentences_of)).astype(numpy.float32)
    mean, spread = rows.mean(0), rows.std(0) + 1e-6
    rows -= mean
    rows /= spread
    each = weight[owner] / numpy.array([len(sentences_of[k]) for k in owner])
    coef = fit(numpy.c_[rows, numpy.ones(len(rows), numpy.float32)], is_apart[owner], each, c).coef_[0]
    weights = coef[:-1] / spread
    return Head(numpy.r_[weights, coef[-1] - weights @ mean].astype(numpy.float32))


def told(logit: numpy.ndarray, is_apart: numpy.ndarray) -> str:
    """Describe the share of apart passages that is recognised at several shares of false alarms."""
    own = logit[~is_apart]
    cells = []
    for share in (0.02, 0.03, 0.05, 0.10, 0.20):
        limit = numpy.quantile(own, 1 - share)
        cells.append(f"{share:.2f}: {(logit[is_apart] > limit).mean():.2f} (limit {limit:.2f})")
    return ", ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--examples", type=Path, default=EXAMPLES)
    parser.add_argument("--cache", type=Path, help="file of what the reading model makes of the passages")
    options = parser.parse_args()
    prompts = messages(options.data / "train.jsonl") + more_messages(options.data / "more.jsonl")
    agents = [m.before for m in prompts if m.before]
    rows = list(read_rows(options.examples))
    typed = [row["rule"] for row in rows if row["label"] == "typed" and len(row["rule"]) <= LONGEST_RULE]
    found = [*ours(rows, typed, agents), *real(prompts), *beside(prompts, typed), *alone(typed)]
    small, second = (seen(found, is_second, options.cache) for is_second in (False, True))
    use = [k for k, rows in enumerate(small) if len(rows)]
    found, small, second = ([each[k] for k in use] for each in (found, small, second))
    x = matrix(found)
    groups = sorted({p.group for p in found})
    random.Random(2).shuffle(groups)
    fold = {group: number % FOLDS for number, group in enumerate(groups)}
    of = numpy.array([fold[p.group] for p in found])
    logits = numpy.zeros((len(found), 3))
    for number in range(FOLDS):
        its, others = numpy.flatnonzero(of == number), numpy.flatnonzero(of != number)
        those = [found[k] for k in others]
        logits[its, 0] = x[its] @ train_words(those, x[others])
        for column, rows, c in ((1, small, C_MODEL), (2, second, C_SECOND)):
            logits[its, column] = train_head(those, [rows[k] for k in others], c).logits([rows[k] for k in its])
    is_apart = numpy.array([p.is_apart for p in found])
    plain = numpy.array([p.is_plain for p in found])
    blend = LogisticRegression(C=C_BLEND).fit(logits[plain], is_apart[plain])
    blended = blend.decision_function(logits)
    for name, logit in (*zip(NAMES, logits.T, strict=True), ("blended", blended)):
        people = ~is_apart & numpy.array([p.weight == REAL_WEIGHT for p in found])
        print(f"{name}: {told(logit[plain], is_apart[plain])}")
        at = {limit: round(float((logit[people] > limit).mean()), 3) for limit in (-2, -1.5, -1, -0.5, 0)}
        print(f"  of what strangers typed, apart by limit: {at}")
    save({"apart": train_words(found, x)}, surroundings.WEIGHTS)
    _save_head(train_head(found, small, C_MODEL), reading_model.APART_WEIGHTS)
    _save_head(train_head(found, second, C_SECOND), reading_model.SECOND_APART_WEIGHTS)
    _save_blend(logits[plain], is_apart[plain])


def _save_blend(logits: numpy.ndarray, is_apart: numpy.ndarray) -> None:
    """Write the weights of both readers' logits, by our examples that a fold left out."""
    path = Path(calibration.__file__).with_name("calibration.json")
    known = json.loads(path.read_text())
    for number, reader in enumerate(known, 1):
        columns = NAMES[:number]
        blend = LogisticRegression(C=C_BLEND).fit(logits[:, :number], is_apart)
        weights = {"bias": blend.intercept_[0] + STRICT, **dict(zip(columns, blend.coef_[0], strict=True))}
        known[reader]["apart"] = {name: round(float(value), 4) for name, value in weights.items()}
        print(reader, known[reader]["apart"])
    path.write_text(json.dumps(known, indent=1) + "\n")


def _save_head(head: Head, path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": head.weights[None, :-1].copy(), "bias": head.weights[-1:].copy()}, path)


if __name__ == "__main__":
    main()
