"""How well the local miner finds what is worth keeping: `python -m memoryvault.bench.reflection`.

Message level: a message counts as X when any candidate of category X names its record. The classifier's weights and
thresholds are fitted anew in every fold, on other sessions than those it is judged on.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..pipelines.mining import mine
from ..pipelines.mining.classifier import Classifier, packaged
from ..pipelines.mining.features import Features
from ..pipelines.mining.fitting import Examples
from ..pipelines.mining.tokens import BUCKETS
from .mining_data import WRITTEN, LabelledMessage, held_out, labelled, said, unpacked_sessions
from .train_miner import FOLDS, Training, examples_of, features_of, fold_of

RESAMPLES = 1000
SEED = 20240229

CAVEAT = """\
The folds keep the classifier's weights and thresholds away from the sessions they are judged on. They do not do that
for the rules and cues, nor for the strength of the penalty and the weight of n-grams: those were chosen with all of
these messages in view. So the figures of the local miner are too good by an unknown amount; only sessions that nobody
has seen can tell. HIGH rests on rules alone: its precision here is a fit, not a forecast.
"""

Found = dict[tuple[str, str], set[str]]
"""(session, record) -> what was found there: a category, or "high"."""

TARGETS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("preference", frozenset({"preference"}), frozenset({"preference"})),
    ("correction", frozenset({"correction"}), frozenset({"correction"})),
    (
        "preference or correction",
        frozenset({"preference", "correction"}),
        frozenset({"preference", "correction", "workflow"}),
    ),
    ("idea", frozenset({"idea"}), frozenset({"idea"})),
    ("fix", frozenset({"fix"}), frozenset({"fix"})),
    ("saved unasked (HIGH)", frozenset({"preference", "correction"}), frozenset({"high"})),
)
"""Name of the row, labels that count as right, findings that count as found."""


@dataclass(frozen=True)
class Score:
    right: int
    found: int
    expected: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 0.0

    @property
    def f1(self) -> float:
        total = self.found + self.expected
        return 2 * self.right / total if total else 0.0


def score(messages: Sequence[LabelledMessage], found: Found, labels: frozenset[str], findings: frozenset[str]) -> Score:
    right = hits = expected = 0
    for item in messages:
        yes = item.label in labels
        hit = bool(found.get((item.turn.session, item.turn.record), set()) & findings)
        right += yes and hit
        hits += hit
        expected += yes
    return Score(right, hits, expected)


def interval(
    messages: Sequence[LabelledMessage], found: Found, labels: frozenset[str], findings: frozenset[str]
) -> dict[str, tuple[float, float]]:
    """95% bootstrap intervals of precision, recall and F1, resampling whole sessions."""
    by_session: dict[str, list[LabelledMessage]] = {}
    for item in messages:
        by_session.setdefault(item.turn.session, []).append(item)
    parts = [score(group, found, labels, findings) for group in by_session.values()]
    draw = random.Random(SEED)
    values: dict[str, list[float]] = {"precision": [], "recall": [], "f1": []}
    for _ in range(RESAMPLES):
        sample = draw.choices(parts, k=len(parts))
        total = Score(sum(s.right for s in sample), sum(s.found for s in sample), sum(s.expected for s in sample))
        for name, series in values.items():
            series.append(getattr(total, name))
    return {
        name: (sorted(series)[int(RESAMPLES * 0.025)], sorted(series)[int(RESAMPLES * 0.975)])
        for name, series in values.items()
    }


# ------------------------------------------------------------------------------------------------- what is compared


def by_miner(messages: Sequence[LabelledMessage], classifier: Classifier) -> Found:
    """What the miner proposes, message by message. (Context changes a statement, not whether there is one.)"""
    found: Found = {}
    for item in messages:
        for candidate in mine([item.turn], classifier=classifier):
            _note(found, item, candidate.category)
            if candidate.standing_rule and candidate.typed and candidate.role == "user":
                _note(found, item, "high")
    return found


def _note(found: Found, item: LabelledMessage, what: str) -> None:
    found.setdefault((item.turn.session, item.turn.record), set()).add(what)


_FIRST_PATTERNS: tuple[tuple[str, bool, str], ...] = (
    ("preference", True, r"\b(?:always|never)\s+\w+"),
    ("preference", True, r"\bI\s+(?:prefer|want|need|expect|like)\s+\w+"),
    ("preference", True, r"\b(?:don'?t|do not)\s+\w+"),
    ("preference", True, r"\buse\s+\S+\s+(?:instead of|not|over)\s+\S+"),
    ("correction", False, r"^(?:no|nope|wait|actually|stop)\b[,\s]"),
    ("correction", False, r"\b(?:that'?s|that is|this is|it'?s)\s+(?:wrong|not right|incorrect)\b"),
    ("correction", False, r"\b(?:should|shouldn'?t)\s+(?:not\s+)?have\b"),
    ("correction", False, r"\bI\s+(?:said|told you)\b"),
    ("fix", False, r"\b(?:fixed|resolved|solved)\s+by\b"),
    ("fix", False, r"\bworkaround\b"),
    ("fix", False, r"\b(?:caused by|due to|root cause)\b"),
    ("idea", False, r"\bwe\s+(?:should|could)\s+(?:also|eventually|later)\b"),
    ("idea", False, r"\b(?:in (?:the )?future|follow-?up|its own (?:project|plan))\b"),
    ("idea", False, r"\bidea:"),
)
"""The first implementation's patterns, as far as the recorded cases show them; the flag marks what it saved unasked."""


def by_first_patterns(messages: Sequence[LabelledMessage]) -> Found:
    patterns = [(name, high, re.compile(text, re.IGNORECASE | re.MULTILINE)) for name, high, text in _FIRST_PATTERNS]
    found: Found = {}
    for item in messages:
        for name, high, pattern in patterns:
            if (name == "fix" or not item.by_agent) and pattern.search(item.turn.text):
                _note(found, item, name)
                if high:
                    _note(found, item, "high")
    return found


def cross_validated(
    messages: Sequence[LabelledMessage],
    examples: Examples,
    find: Callable[[Sequence[LabelledMessage], Classifier], Found],
) -> Found:
    """Each fold is judged by a classifier (weights and thresholds) that saw only other sessions."""
    training = Training(messages, examples)
    folds = fold_of(messages)
    found: Found = {}
    for fold in range(FOLDS):
        use = [i for i, own in enumerate(folds) if own != fold and not messages[i].near and not messages[i].doubtful]
        classifier = training.classifier(use)
        found.update(find([m for m, own in zip(messages, folds, strict=True) if own == fold], classifier))
    return found


def _by_ngrams(messages: Sequence[LabelledMessage], classifier: Classifier) -> Found:
    found: Found = {}
    for item in messages:
        features = ngrams_only(features_of(item))
        if item.by_agent:
            answers = [("fix", classifier["agent-fix"])]
        else:
            answers = [(name, classifier[name]) for name in ("durable", "idea")]
        for name, head in answers:
            if head.probability(features) >= head.threshold:
                if name == "durable":
                    correction = classifier["correction"]
                    is_one = correction.probability(features) >= correction.threshold
                    name = "correction" if is_one else "preference"
                _note(found, item, name)
    return found


def ngrams_only(features: Features) -> Features:
    return {name: value for name, value in features.items() if name.startswith("h:") or name == "bias"}


# --------------------------------------------------------------------------------------------------- the report


def table(messages: Sequence[LabelledMessage], results: Sequence[tuple[str, Found]]) -> str:
    lines = ["| what | found by | P | R | F1 | right / found / there |", "|---|---|---|---|---|---|"]
    for row, labels, findings in TARGETS:
        for name, found in results:
            total = score(messages, found, labels, findings)
            if not total.found:
                lines.append(f"| {row} | {name} | – | – | – | 0 / 0 / {total.expected} |")
                continue
            near = interval(messages, found, labels, findings)
            cells = [
                f"{getattr(total, key):.2f} ({near[key][0]:.2f}–{near[key][1]:.2f})"
                for key in ("precision", "recall", "f1")
            ]
            lines.append(f"| {row} | {name} | {' | '.join(cells)} | {total.right} / {total.found} / {total.expected} |")
    return "\n".join(lines)


def uncut(messages: Sequence[LabelledMessage], sessions: Sequence[Path], found: Found) -> str:
    """Whole sessions: how much is proposed where nothing was selected for labelling."""
    said_by_users = {(turn.session, turn.record) for path in sessions for turn in said(path) if turn.is_users_words}
    here = [item for item in messages if (item.turn.session, item.turn.record) in said_by_users]
    sure = [item for item in here if not item.doubtful]
    lines = [
        "| what | P | R | F1 | right / found / there | P and R without what was doubtful |",
        "|---|---|---|---|---|---|",
    ]
    for row, labels, findings in TARGETS:
        part, surely = score(here, found, labels, findings), score(sure, found, labels, findings)
        lines.append(
            f"| {row} | {part.precision:.2f} | {part.recall:.2f} | {part.f1:.2f} "
            f"| {part.right} / {part.found} / {part.expected} | {surely.precision:.2f}, {surely.recall:.2f} |"
        )
    return (
        f"Whole sessions: {len(here)} of the {len(said_by_users)} user messages in {len(sessions)} sessions are"
        f" labelled (the development labels and ours together); of {len(here) - len(sure)} we were not sure.\n\n"
        + "\n".join(lines)
    )


def elsewhere() -> str:
    """Our own examples of other fields of work, which the packaged classifier has not seen."""
    apart = held_out()
    lines = ["| what | found by | P | R | F1 | right / found / there |", "|---|---|---|---|---|---|"]
    for row, labels, findings in TARGETS:
        for name, found in (("local miner", by_miner(apart, packaged())), ("first patterns", by_first_patterns(apart))):
            part = score(apart, found, labels, findings)
            if part.expected:
                lines.append(
                    f"| {row} | {name} | {part.precision:.2f} | {part.recall:.2f} | {part.f1:.2f} "
                    f"| {part.right} / {part.found} / {part.expected} |"
                )
    return f"{len(apart)} examples of our own, held out, by the packaged weights:\n\n" + "\n".join(lines)


def main() -> int:
    root = os.environ.get("MEMORYVAULT_DATA")
    if not root:
        print("MEMORYVAULT_DATA must name the folder with the development data", file=sys.stderr)
        return 2
    with unpacked_sessions(Path(root)) as sessions:
        everything = labelled(Path(root), sessions)
        mined = cross_validated(everything, examples_of(everything), by_miner)
        bare = Examples([ngrams_only(features_of(item)) for item in everything])
        plain = cross_validated(everything, bare, _by_ngrams)
        judged = [item for item in everything if item.source == "dev"]
        first = by_first_patterns(judged)
        print(CAVEAT)
        print(
            f"{len(judged)} labelled messages of {len({m.turn.session for m in judged})} sessions; {FOLDS}-fold"
            f" cross-validation by session; 95% intervals by bootstrap over sessions; n-grams in {BUCKETS} buckets.\n"
        )
        print(table(judged, [("local miner", mined), ("n-gram classifier", plain), ("first patterns", first)]))
        print("\n" + uncut([m for m in everything if m.source not in WRITTEN], sessions, mined))
        print("\n" + elsewhere())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
