"""Train the gate: `python training/gate/fit.py ROWS [--write]`. ROWS is the folder of collect.py.

A softmax regression of needed, fine and wrong; its score is the log-odds of needed against wrong, which is what orders
pairs best where wrong entries are what an entry costs. Prints the curve of needs met over wrong entries a prompt,
cross-validated by person, and how the notes vaults fare; `--write` writes vault/gate_weights.py.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from memoryvault.index.gating import answers
from memoryvault.index.query import analyse
from memoryvault.vault.gate import surely

BY_WORDS = [
    "coverage",
    "share",
    "shared",
    "rarest",
    "complete",
    "one_term",
    "passage_words",
    "prompt_words",
    "vault",
]
BY_MEANING = ["answers", "cosine", "related", "nearer", "shared", "coverage", "share", "passage_words", "prompt_words"]
BY_MEANING += ["vault"]
OF_NOTES = {"fact": "rule", "workflow": "rule", "said_high": "said_medium", "said_low": "said_medium"}
"""Features of the note, each with the one that is left out of the regression because it follows from the others."""
EXACT = 1.5
"""Weight of `exact`, not learned: few of these prompts are a name or a few words of one note."""
COMPONENTS = 24
"""Principal components of the prompts' vectors, by which the prompts that need an entry are recognised."""
SURELY = {"by_meaning": 0.8, "by_words": 3.0}
"""Weight of `surely`, not learned: few of these prompts are questions that a note answers."""
PEOPLE = ("own", "20", "60", "200", "2000")
K = 5
WRONG_A_PROMPT = {"cautious": 0.10, "balanced": 0.20, "eager": 0.40}
"""Wrong entries for each prompt, by eagerness, in the mean of all sizes."""
STRENGTH = 0.03
MIXED_WEIGHT = 0.2
"""Weight of a row of a vault that is filled with others' memories, which differ already in their subjects; a row of
a person's own vault weighs 1."""
NOTES_WEIGHT = 0.1
"""Total weight of the rows of the notes' vaults, as a share of that of people."""


def load(path: Path) -> tuple[list[dict[str, Any]], np.ndarray]:
    rows = []
    for part in sorted(path.glob("*.rows")):
        with part.open("rb") as file:
            rows += pickle.load(file)  # noqa: S301 - our own file
    return rows, np.array([row["label"] for row in rows])


def matrix(rows: list[dict[str, Any]], names: list[str]) -> np.ndarray:
    return np.array([[row["by_meaning"].get(name, 0.0) for name in names] for row in rows])


def add_derived(rows: list[dict[str, Any]]) -> None:
    """Add the features that are computed from others."""
    for row in rows:
        pair = row["by_meaning"]
        if "cosine" in pair:
            pair["answers"] = answers(pair["cosine"], pair["above_background"], pair["words"], pair["one_term"])
            pair["surely"] = surely(pair)


def prompt_components(
    rows: list[dict[str, Any]], vectors: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the components of each row's prompt (zeros without a vector), and the mean and axes for them."""
    known = np.array(list(vectors.values()))
    mean = known.mean(0)
    axes = np.linalg.svd(known - mean, full_matrices=False)[2][:COMPONENTS]
    of_prompt = {prompt: axes @ (vector - mean) for prompt, vector in vectors.items()}
    nothing = np.zeros(COMPONENTS)
    return np.array([of_prompt.get(row["prompt"], nothing) for row in rows]), mean, axes


def centred(rows: list[dict[str, Any]], sources: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
    """Return the OF_NOTES features, less their mean in people's own vaults, and the means.

    A note without a feature of a kind gets 0, so that it counts as an average one.
    """
    found, means = [], {}
    for name, other in OF_NOTES.items():
        family = [one for one in OF_NOTES if OF_NOTES[one] == other] + [other]
        values = np.array([row["by_meaning"].get(name, 0.0) for row in rows])
        known = np.array([any(one in row["by_meaning"] for one in family) for row in rows])
        means[name] = float(values[known & (sources == "own")].mean())
        found.append(np.where(known, values - means[name], 0.0))
    return np.column_stack(found), means


def weights_of_notes(slopes: Mapping[str, float], means: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of all uncentred features, also of those left out, from the slopes of the centred ones."""
    weights = {}
    for other in dict.fromkeys(OF_NOTES.values()):
        family = [name for name in OF_NOTES if OF_NOTES[name] == other]
        weights[other] = -sum(slopes[name] * means[name] for name in family)
        weights |= {name: slopes[name] + weights[other] for name in family}
    return weights


def fit(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """Return weights and constant of the log-odds of needed against wrong."""
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    model = LogisticRegression(C=STRENGTH, max_iter=500, tol=1e-3).fit((x - mean) / deviation, y, sample_weight=w)
    slope = (model.coef_[2] - model.coef_[0]) / deviation
    return slope, float(model.intercept_[2] - model.intercept_[0] - slope @ mean)


def sample_weights(rows: list[dict[str, Any]]) -> np.ndarray:
    sources = [row["source"] for row in rows]
    people = sum(MIXED_WEIGHT if source in PEOPLE[1:] else source == "own" for source in sources)
    notes = sum(source not in PEOPLE for source in sources)
    weight = {**dict.fromkeys(PEOPLE, MIXED_WEIGHT), "own": 1.0}
    return np.array([weight.get(source, NOTES_WEIGHT * people / max(notes, 1)) for source in sources])


def cross_validate(x: np.ndarray, y: np.ndarray, w: np.ndarray, groups: np.ndarray) -> np.ndarray:
    scores = np.zeros(len(y))
    for train, test in GroupKFold(5, shuffle=True, random_state=1).split(x, y, groups):
        slope, constant = fit(x[train], y[train], w[train])
        scores[test] = x[test] @ slope + constant
    return scores


class Curve:
    """Needs met and wrong entries over all thresholds, for the prompts of one size of vault."""

    def __init__(
        self, rows: list[dict[str, Any]], labels: np.ndarray, scores: np.ndarray, needs: dict[str, Any]
    ) -> None:
        by_prompt = defaultdict(list)
        for i, row in enumerate(rows):
            by_prompt[row["prompt"]].append(i)
        self.given = sorted(
            (
                (scores[i], labels[i], rows[i]["prompt"])
                for found in by_prompt.values()
                for i in sorted(found, key=lambda i: -scores[i])[:K]
            ),
            key=lambda one: -one[0],
        )
        self.needs = needs

    def at(self, threshold: float) -> tuple[float, float, float, float]:
        """Return (needs met that are no habit, needs met, wrong entries a prompt, noise) at this threshold."""
        given = [one for one in self.given if one[0] >= threshold]
        met = sum(label == 2 for _, label, _ in given)
        wrong = sum(label == 0 for _, label, _ in given)
        noisy = {prompt for _, label, prompt in given if label == 0} & self.needs["quiet"]
        habits, other = self.needs["habits"], self.needs["other"]
        return (
            met / other,
            (met + habits) / (other + habits),
            wrong / self.needs["prompts"],
            len(noisy) / len(self.needs["quiet"]),
        )

    def thresholds(self, targets: list[float]) -> list[float]:
        """Return the thresholds with these numbers of wrong entries a prompt."""
        wrong = [score for score, label, _ in self.given if label == 0]
        return [wrong[min(int(target * self.needs["prompts"]), len(wrong) - 1)] for target in targets]


def needs_of(data: Path) -> dict[str, Any]:
    read = lambda name: [json.loads(line) for line in (data / "prompts" / name).open(encoding="utf-8")]  # noqa: E731
    core = {row["key"] for row in read("memories.jsonl") if row["channel"] == "core"}
    needs = read("needs.jsonl")
    keys = [key for row in needs for key in row["need"]]
    return {
        "prompts": len(needs),
        "quiet": {row["id"] for row in needs if not row["need"]},
        "habits": sum(key in core for key in keys),
        "other": sum(key not in core for key in keys),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    rows, labels = load(args.rows)
    needs = needs_of(Path(os.environ["MEMORYVAULT_DATA"]))
    groups = np.array([row["person"] for row in rows])
    sources = np.array([row["source"] for row in rows])
    weights = sample_weights(rows)
    gates: dict[str, Any] = {}
    vectors = load_vectors(args.rows, rows)
    extra, mean, axes = prompt_components(rows, vectors)
    add_derived(rows)
    asks: dict[str, Any] = {}
    of_notes, means = centred(rows, sources)
    for gate, names in (("by_meaning", BY_MEANING), ("by_words", BY_WORDS)):
        own = matrix(rows, names)
        x = np.column_stack([own, of_notes, *([extra] if gate == "by_meaning" else [])])
        sure = SURELY[gate] * (matrix(rows, ["surely"])[:, 0] if gate == "by_meaning" else surely_by_words(own, names))
        scores = cross_validate(x, labels, weights, groups) + sure
        report(gate, rows, labels, sources, scores, needs)
        slope, constant = fit(x, labels, weights)
        vault = own[:, names.index("vault")]
        bend = size_slope(rows, labels, sources, scores, vault, needs)
        slope[names.index("vault")] -= bend
        scores = scores - bend * vault
        limits = {name: balanced(rows, labels, sources, scores, needs, one) for name, one in WRONG_A_PROMPT.items()}
        for name, limit in limits.items():
            at_threshold(name, rows, labels, sources, scores, needs, limit)
        for name, weight in zip([*names, *OF_NOTES], slope * x.std(0), strict=False):
            print(f"   {name:18s} {weight:+.2f}")
        plain = dict(zip(names, slope, strict=False))
        plain |= weights_of_notes(dict(zip(OF_NOTES, slope[len(names) :], strict=False)), means)
        learned = {name: round(float(value), 4) for name, value in plain.items()}
        gates[gate] = {
            "weights": {"": round(constant, 4), **learned, "surely": SURELY[gate], "exact": EXACT},
            "thresholds": {name: round(float(value), 3) for name, value in limits.items()},
        }
        if gate == "by_meaning":
            gates[gate]["weights"]["asks"] = 1.0
            direction = axes.T @ slope[len(names) + len(OF_NOTES) :]
            asks = {"model": "all-MiniLM-L6-v2", "offset": round(float(-mean @ direction), 5)}
            asks["direction"] = [round(float(value), 5) for value in direction]
    for name in ("cosine", "shared", "answers"):
        report(name, rows, labels, sources, matrix(rows, [name])[:, 0], needs)
    if args.write:
        write(gates)
        target = Path(__file__).resolve().parents[2] / "index" / "asks.json"
        target.write_text(json.dumps(asks) + "\n", encoding="utf-8")


def load_vectors(folder: Path, rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return the vector of each person's prompt."""
    with (folder / "vectors").open("rb") as file:
        texts = pickle.load(file)  # noqa: S301 - our own file
    data = Path(os.environ["MEMORYVAULT_DATA"]) / "prompts"
    asked = {row["prompt"] for row in rows}
    said = [json.loads(line) for name in ("train", "dev") for line in (data / f"{name}.jsonl").open(encoding="utf-8")]
    return {row["id"]: texts["q", analyse(row["text"]).dense_text][0] for row in said if row["id"] in asked}


def surely_by_words(x: np.ndarray, names: list[str]) -> np.ndarray:
    return np.array([surely(dict(zip(names, row, strict=True))) for row in x])


def select(rows: list[dict[str, Any]], labels: np.ndarray, sources: np.ndarray, scores: np.ndarray, source: str) -> Any:
    chosen = np.flatnonzero(sources == source)
    return [rows[i] for i in chosen], labels[chosen], scores[chosen]


def balanced(rows: Any, labels: Any, sources: Any, scores: Any, needs: Any, target: float) -> float:
    """Return the threshold at which the vaults of all sizes have `target` wrong entries a prompt in the mean."""
    curves = [Curve(*select(rows, labels, sources, scores, source), needs) for source in PEOPLE if source in sources]
    low, high = -20.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        if np.mean([curve.at(middle)[2] for curve in curves]) > target:
            low = middle
        else:
            high = middle
    return high


def size_slope(rows: Any, labels: Any, sources: Any, scores: Any, vault: np.ndarray, needs: Any) -> float:
    """Return the slope of the threshold over the logarithm of the vault's size at equal wrong entries a prompt."""
    limits, sizes = [], []
    for source in PEOPLE:
        part = select(rows, labels, sources, scores, source)
        limits.append(Curve(*part, needs).thresholds([WRONG_A_PROMPT["balanced"]])[0])
        sizes.append(float(np.mean(vault[sources == source])))
    return float(np.polyfit(sizes, limits, 1)[0])


def report(name: str, rows: Any, labels: Any, sources: Any, scores: Any, needs: Any) -> None:
    for source in PEOPLE:
        if source not in sources:
            continue
        curve = Curve(*select(rows, labels, sources, scores, source), needs)
        cells = []
        for limit in curve.thresholds([0.05, 0.1, 0.2, 0.3, 0.4]):
            met, all_met, wrong, noise = curve.at(limit)
            cells.append(f"{wrong:.2f}: {met:.3f} {all_met:.2f} n{noise:.2f}")
        print(f"{name:12s} {source:5s} {' | '.join(cells)}")


def at_threshold(name: str, rows: Any, labels: Any, sources: Any, scores: Any, needs: Any, limit: float) -> None:
    for source in dict.fromkeys(sources):
        part = select(rows, labels, sources, scores, source)
        if source in PEOPLE:
            met, all_met, wrong, noise = Curve(*part, needs).at(limit)
            print(f"   {name:9s} {source:34s} other {met:.3f} all {all_met:.2f} wrong {wrong:.2f} noise {noise:.2f}")
            continue
        by_prompt: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for row, label, score in zip(*part, strict=True):
            by_prompt[row["prompt"]].append((score, label))
        asked = {
            p: sorted(found, reverse=True)[:K] for p, found in by_prompt.items() if any(label for _, label in found)
        }
        silent = {p: found for p, found in by_prompt.items() if p not in asked}
        met = sum(any(label and score >= limit for score, label in found) for found in asked.values())
        noisy = sum(any(score >= limit for score, _ in found) for found in silent.values())
        print(f"   {name:9s} {source:34s} kept {met}/{len(asked)} something for nothing {noisy}/{len(silent)}")


def write(gates: dict[str, Any]) -> None:
    target = Path(__file__).resolve().parents[2] / "vault" / "gate_weights.py"
    lines = [
        '"""The weights of the gate (gate.py). Written by training/gate/fit.py; the weight of \'\' is the constant."""',
        "",
    ]
    lines += ["from __future__ import annotations", "", "TYPE_CHECKING = False", "if TYPE_CHECKING:"]
    lines += ["    from typing import Any", "", "GATES: dict[str, dict[str, Any]] = {"]
    for gate, parts in gates.items():
        lines.append(f'    "{gate}": {{')
        for part, values in parts.items():
            lines.append(f'        "{part}": {{')
            lines += [f'            "{name}": {value},' for name, value in values.items()]
            lines.append("        },")
        lines.append("    },")
    target.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
