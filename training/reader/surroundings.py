"""Train the models that separate a person's own words from another's.

`python -m memoryvault.training.reader.surroundings DATA`. Two linear models judge a passage: one by hashed words and
the layout, one by the states of the reading model. Their blend goes into `calibration.json`. DATA holds the labelled
prompts, whose quotes a person typed. Deterministic. Prints how many passages of left-out messages and people are
recognised at several limits.
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
C_WORDS, C_MODEL, C_BLEND = 20.0, 0.003, 1.0
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


class _Keeping:
    """Stands in for the head, and keeps its input."""

    def __init__(self) -> None:
        self.rows: list[numpy.ndarray] = []

    def __call__(self, states: Any, window: reading_model.Window) -> Any:
        found = reading_model.surroundings(states, window)
        self.rows += list(found)
        return found[:, 0]


class Model:
    """The reading model's view of passages."""

    def __init__(self) -> None:
        self._keeping = _Keeping()
        self._reader = message_reader.MessageReader(Path()).load(apart=self._keeping)

    def rows(self, passage: Passage) -> numpy.ndarray:
        """float32[n, SURROUNDINGS] of the sentences of a passage; none where it is pasted by its form."""
        text = blanked(passage.text, pasted_ranges(passage.text))
        parts = sentences(text)
        self._keeping.rows = []
        if not parts:
            return numpy.zeros((0, reading_model.SURROUNDINGS), numpy.float32)
        self._reader.read(text, passage.before, [(part.start, part.end) for part in parts])
        found = [row for row, part in zip(self._keeping.rows, parts, strict=False) if _is_of(part, passage)]
        return numpy.array(found, numpy.float32).reshape(-1, reading_model.SURROUNDINGS)


def _is_of(part: Sentence, passage: Passage) -> bool:
    shared = min(part.end, passage.end) - max(part.start, passage.start)
    return shared > 0.3 * min(part.end - part.start, passage.end - passage.start)


def seen(found: Sequence[Passage], cache: Path | None) -> list[numpy.ndarray]:
    """Return `Model.rows` of each passage, from the cache where it has them."""
    keys = [hashlib.sha256(repr((p.text, p.start, p.end, p.before)).encode()).hexdigest() for p in found]
    known: dict[str, numpy.ndarray] = {}
    if cache and cache.exists():
        with numpy.load(cache) as kept:
            parts = numpy.split(kept["rows"], numpy.cumsum(kept["counts"])[:-1])
            known = dict(zip(kept["keys"].tolist(), parts, strict=True))
    model = None
    for key, passage in zip(keys, found, strict=True):
        if key not in known:
            model = model or Model()
            known[key] = model.rows(passage)
    if cache and model:
        counts = [len(rows) for rows in known.values()]
        numpy.savez(cache, rows=numpy.concatenate(list(known.values())), counts=counts, keys=list(known))
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
class Both:
    """The two models, trained on the same passages."""

    words: numpy.ndarray
    model: numpy.ndarray
    """Weights, and the bias last."""

    def logits(self, x: csr_matrix, sentences_of: Sequence[numpy.ndarray]) -> numpy.ndarray:
        """float[n, 2] by words and by the model: that of the passage's sentence that seems most another's."""
        own = [float((rows @ self.model[:-1]).max() + self.model[-1]) if len(rows) else 0.0 for rows in sentences_of]
        return numpy.stack([x @ self.words, numpy.array(own)], axis=1)


def train(found: Sequence[Passage], x: csr_matrix, sentences_of: Sequence[numpy.ndarray]) -> Both:
    is_apart = numpy.array([p.is_apart for p in found])
    weight = numpy.array([p.weight for p in found])
    words = fit(x, is_apart, weight, C_WORDS).coef_[0]
    owner = numpy.array([k for k, rows in enumerate(sentences_of) for _ in rows])
    rows = numpy.concatenate(list(sentences_of))
    mean, spread = rows.mean(0), rows.std(0) + 1e-6
    scaled = numpy.c_[(rows - mean) / spread, numpy.ones(len(rows))]
    each = weight[owner] / numpy.array([len(sentences_of[k]) for k in owner])
    coef = fit(scaled, is_apart[owner], each, C_MODEL).coef_[0]
    weights = coef[:-1] / spread
    return Both(words, numpy.r_[weights, coef[-1] - weights @ mean])


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
    sentences_of = seen(found, options.cache)
    use = [k for k, rows in enumerate(sentences_of) if len(rows)]
    found, sentences_of = [found[k] for k in use], [sentences_of[k] for k in use]
    x = matrix(found)
    groups = sorted({p.group for p in found})
    random.Random(2).shuffle(groups)
    fold = {group: number % FOLDS for number, group in enumerate(groups)}
    of = numpy.array([fold[p.group] for p in found])
    logits = numpy.zeros((len(found), 2))
    for number in range(FOLDS):
        its, others = numpy.flatnonzero(of == number), numpy.flatnonzero(of != number)
        both = train([found[k] for k in others], x[others], [sentences_of[k] for k in others])
        logits[its] = both.logits(x[its], [sentences_of[k] for k in its])
    is_apart = numpy.array([p.is_apart for p in found])
    plain = numpy.array([p.is_plain for p in found])
    blend = LogisticRegression(C=C_BLEND).fit(logits[plain], is_apart[plain])
    blended = blend.decision_function(logits)
    for name, logit in (("words", logits[:, 0]), ("model", logits[:, 1]), ("blended", blended)):
        people = ~is_apart & numpy.array([p.weight == REAL_WEIGHT for p in found])
        print(f"{name}: {told(logit[plain], is_apart[plain])}")
        at = {limit: round(float((logit[people] > limit).mean()), 3) for limit in (-2, -1.5, -1, -0.5, 0)}
        print(f"  of what strangers typed, apart by limit: {at}")
    both = train(found, x, sentences_of)
    save({"apart": both.words}, surroundings.WEIGHTS)
    _save_head(both.model)
    _save_blend(logits[plain], is_apart[plain])


def _save_blend(logits: numpy.ndarray, is_apart: numpy.ndarray) -> None:
    """Write the weights of both readers' logits, by our examples that a fold left out."""
    path = Path(calibration.__file__).with_name("calibration.json")
    known = json.loads(path.read_text())
    for reader, columns in (("words", ("words",)), ("model", ("words", "model"))):
        blend = LogisticRegression(C=C_BLEND).fit(logits[:, : len(columns)], is_apart)
        weights = {"bias": blend.intercept_[0] + STRICT, **dict(zip(columns, blend.coef_[0], strict=True))}
        known[reader]["apart"] = {name: round(float(value), 4) for name, value in weights.items()}
        if reader == "model":
            known["mpnet"]["apart"] = known[reader]["apart"]  # It is asked this about all messages.
        print(reader, known[reader]["apart"])
    path.write_text(json.dumps(known, indent=1) + "\n")


def _save_head(weights: numpy.ndarray) -> None:
    from safetensors.numpy import save_file

    save_file(
        {
            "weight": weights[None, :-1].astype(numpy.float32),
            "bias": weights[-1:].astype(numpy.float32),
        },
        reading_model.APART_WEIGHTS,
    )


if __name__ == "__main__":
    main()
