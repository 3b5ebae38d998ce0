"""Rebuilds the local miner's weights: `MEMORYVAULT_DATA=… python -m memoryvault.bench.train_miner`.

Deterministic: the same data gives the same file. Thresholds are chosen by cross-validation, grouped by session.
Needs numpy and scipy (they come with the extra `semantic`).
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.mining.agent_message import AgentMessage
from ..pipelines.mining.classifier import WEIGHTS_FILE, Classifier, Head
from ..pipelines.mining.features import MAX_CUED_SENTENCES, MAX_WORDS, Features, message, named_cues, named_ngrams
from ..pipelines.mining.fitting import Examples, Vector
from ..pipelines.mining.sentence_scan import SentenceScan
from ..pipelines.mining.sentences import sentences
from ..pipelines.mining.tokens import hashed_ngrams, words_of
from .mining_data import WRITTEN, LabelledMessage, Source, labelled, unpacked_sessions

FOLDS = 8
SHARED_CHARS = 45
"""Messages that begin alike for so long were said once and copied with their session."""

_SESSIONS: Mapping[Source, float] = {"dev": 1.0, "labels": 0.5, "examples": 0.7}
"""What a message of a source counts. Our own labels count half: one annotator. Our examples count more: the sessions
are all one project's, and without them the miner finds a fifth of what other projects' users say (docs/benchmarks.md).
"""
_AND_ORDERS: Mapping[Source, float] = {**_SESSIONS, "orders": 0.25}
_AND_FIELDS: Mapping[Source, float] = {**_SESSIONS, "orders": 0.3, "fields": 0.3}
"""There are so many of these that at the weight of the examples they would decide alone (ADR 26)."""


@dataclass(frozen=True)
class Question:
    """What a head is trained to answer, on which messages, and which balance its threshold strikes."""

    head: str
    asks: Callable[[LabelledMessage], bool]
    among: Callable[[LabelledMessage], bool]
    strength: float
    weights: Mapping[Source, float]
    """What a message of a source counts; a source without a weight is not used."""
    goal: tuple[float, float] | None = None
    """Precision and recall to keep the same distance from; None for the best F1."""
    lowest: bool = False
    """Of thresholds that do nearly as well take the lowest, not the middle one: of messages of other projects the
    answers are less sure, so that there recall falls and precision does not."""

    def uses(self, message: LabelledMessage) -> bool:
        """Is it trained on this message?"""
        return message.source in self.weights and self.among(message)


QUESTIONS = (
    Question(
        "durable",
        lambda m: m.label in ("preference", "correction"),
        lambda m: not m.by_agent,
        0.3,
        _AND_ORDERS,
        goal=(0.45, 0.6),
        lowest=True,
    ),
    Question(
        "correction",
        lambda m: m.label == "correction",
        lambda m: not m.by_agent and m.label in ("preference", "correction"),
        0.03,
        _SESSIONS,
    ),
    Question("idea", lambda m: m.label == "idea", lambda m: not m.by_agent, 0.1, _AND_FIELDS, lowest=True),
    Question("agent-fix", lambda m: m.label == "fix", lambda m: m.by_agent, 0.1, _SESSIONS),
)
"""There is no head for fixes in the user's words: they are too few to learn from, so only clear forms count
(`explicit_forms`)."""


def examples_of(messages: Sequence[LabelledMessage]) -> Examples:
    """The messages with their features. What a user and an agent both say counts as seen in two messages, whether or
    not the agent's is asked for it."""
    return Examples([features_of(item) for item in messages], [_shown_in(item) for item in messages])


def features_of(item: LabelledMessage) -> Features:
    """What the miner asks the message for."""
    return (AgentMessage(item.turn) if item.by_agent else message(item.turn)).features


def _shown_in(item: LabelledMessage) -> set[str]:
    shown = set(features_of(item))
    if item.by_agent:
        texts = [part.text for part in sentences(item.turn)]
        words = words_of("\n".join(texts).lower())[:MAX_WORDS]
        shown.update(named_cues([SentenceScan(text) for text in texts[:MAX_CUED_SENTENCES]]))
        shown.update(named_ngrams(hashed_ngrams(words)))
    return shown


def fold_of(messages: Sequence[LabelledMessage], folds: int = FOLDS) -> list[int]:
    """A fold per message (-1 for what we wrote): families of sessions whole, largest first into the smallest fold."""
    family = _families(messages)
    sizes = Counter(family[item.turn.session] for item in messages if item.source not in WRITTEN)
    load = [0] * folds
    fold: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        fold[name] = load.index(min(load))
        load[fold[name]] += sizes[name]
    return [-1 if item.source in WRITTEN else fold[family[item.turn.session]] for item in messages]


def _families(messages: Sequence[LabelledMessage]) -> dict[str, str]:
    """Session -> a name for all sessions it shares a message with: resumed and forked ones repeat what was said."""
    family = {item.turn.session: item.turn.session for item in messages}

    def root(session: str) -> str:
        while family[session] != session:
            session = family[session]
        return session

    first: dict[str, str] = {}
    for item in messages:
        words = " ".join(item.turn.text.lower().split())[:SHARED_CHARS]
        if len(words) == SHARED_CHARS:
            one, other = root(first.setdefault(words, item.turn.session)), root(item.turn.session)
            family[max(one, other)] = min(one, other)
    return {session: root(session) for session in family}


@dataclass(frozen=True)
class Training:
    """The labelled messages with their features, ready for any number of fits."""

    messages: Sequence[LabelledMessage]
    examples: Examples

    def classifier(self, use: Sequence[int]) -> Classifier:
        """All heads, on the messages `use`; their thresholds by cross-validation inside these."""
        heads: dict[str, Head] = {}
        for question in QUESTIONS:
            inside = [index for index in use if question.uses(self.messages[index])]
            heads[question.head] = self.examples.head(
                inside, self._solve(question, inside), self._threshold(question, inside)
            )
        return Classifier(heads)

    def _solve(self, question: Question, inside: Sequence[int]) -> Vector:
        group = [self.messages[index] for index in inside]
        return self.examples.solve(
            inside,
            [question.asks(item) for item in group],
            [question.weights[item.source] for item in group],
            strength=question.strength,
        )

    def _threshold(self, question: Question, use: Sequence[int]) -> float:
        folds = fold_of([self.messages[index] for index in use])
        judged: list[tuple[float, bool, float]] = []
        for fold in range(FOLDS):
            inside = [i for i, own in zip(use, folds, strict=True) if own != fold and not self.messages[i].near]
            outside = [i for i, own in zip(use, folds, strict=True) if own == fold]
            if outside:
                answers = self.examples.probabilities(outside, inside, self._solve(question, inside))
                for probability, i in zip(answers, outside, strict=True):
                    item = self.messages[i]
                    judged.append((probability, question.asks(item), question.weights[item.source]))
        return choose_threshold(judged, question.goal, lowest=question.lowest)


PLATEAU = 0.95
"""Thresholds that do nearly as well as the best one are alike; the middle of them is the least accidental."""


def choose_threshold(
    judged: Sequence[tuple[float, bool, float]], goal: tuple[float, float] | None, *, lowest: bool = False
) -> float:
    """The probability from which to say yes, from (probability, truth, weight) of messages the model has not seen."""
    positives = sum(weight for _, yes, weight in judged if yes)
    values: list[tuple[float, float]] = []
    hits = count = 0.0
    for probability, yes, weight in sorted(judged, key=lambda row: -row[0]):
        count += weight
        hits += weight * yes
        if goal is not None:
            value = min(hits / count / goal[0], hits / positives / goal[1])
        else:
            value = 2 * hits / (count + positives)
        values.append((probability, value))
    best = max(value for _, value in values)
    plateau = [probability for probability, value in values if value >= PLATEAU * best]
    return plateau[-1] if lowest else plateau[len(plateau) // 2]


def main() -> int:
    root = os.environ.get("MEMORYVAULT_DATA")
    if not root:
        print("MEMORYVAULT_DATA must name the folder with the development data", file=sys.stderr)
        return 2
    data = Path(root)
    with unpacked_sessions(data) as sessions:
        messages = [item for item in labelled(data, sessions) if not item.doubtful]
    classifier = Training(messages, examples_of(messages)).classifier(range(len(messages)))
    WEIGHTS_FILE.write_text(classifier.dump(), encoding="utf-8")
    for name, head in classifier.heads.items():
        print(f"{name}: {len(head.named)} named weights, threshold {head.threshold:.3f}")
    print(f"wrote {WEIGHTS_FILE} ({WEIGHTS_FILE.stat().st_size} bytes) from {len(messages)} messages")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
