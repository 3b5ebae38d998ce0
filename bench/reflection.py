"""Measure the quality of reading on labelled prompts: `python -m memoryvault.bench.reflection`.

MEMORYVAULT_DATA names a folder with `prompts/dev.jsonl`: prompts of people on whom the thresholds were chosen, but the
weights not trained. `--labels FILE` uses other prompts. `--answers FILE …` judges recorded answers (JSON lines with
`id`, and `tier`: saved, proposed, low or null) instead of the local readers, on the messages that all files have;
`--out FILE` records the model's answers.
`--judge` uses our own examples, which were not trained on. Labels that have a `kind` are counted by kind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..index import mpnet_files
from ..index.message_reader import MessageReader
from ..pipelines.candidate import Candidate
from ..pipelines.likeness import content_words
from ..pipelines.reading.calibration import Eagerness
from ..pipelines.reading.linear import NgramReader
from ..pipelines.reading.miner import Miner, ProjectOf
from ..pipelines.reading.reading import LASTING, Message, MessageReading, Reader
from ..services.reading import ModelReader
from ..sources.transcripts.whose_words import apart_ranges, own_text, pasted_ranges
from ..vault.turn import Origin, Role, Turn

DRAWS = 1000
MODELS = Path(sys.prefix) / "share" / "memoryvault" / "models"
"""Where the second model is unpacked, for benchmarks and tests."""
JUDGE = Path(__file__).parent.parent / "training" / "reader" / "examples" / "judge.jsonl"
TIERS = ("saved", "proposed", "low")

Row = Mapping[str, Any]


def folder_name(cwd: str) -> str:
    """Return the name of a working directory, as the project that is known without looking at the disk."""
    return PurePosixPath(cwd).name.lower()


def mine(
    turns: Iterable[Turn],
    *,
    start: int = 0,
    project_of: ProjectOf = folder_name,
    reader: Reader | None = None,
    eagerness: Eagerness = "balanced",
) -> list[Candidate]:
    """Return the candidates of one session, in order."""
    miner = Miner(start=start, project_of=project_of, reader=reader or NgramReader(), eagerness=eagerness)
    found = [candidate for turn in turns for candidate in miner.feed(turn)]
    return [each for each in found if each.records not in miner.refuted]


def in_process(model: MessageReader | None = None, words: NgramReader | None = None, *, again: bool) -> ModelReader:
    """Return the models' reader without the recall service; `again`: with the second model, which must be here."""
    model = model or MessageReader(MODELS)
    if again:
        model.read_again("", "", [])  # So that a model that cannot be loaded ends the run.
    return ModelReader(model.read, model.read_again if again else None, words or NgramReader())


def local_readers() -> Iterator[tuple[str, Reader]]:
    """Yield the readers that can run here, the best one first."""
    if mpnet_files.is_here(MODELS):
        yield "both models", in_process(again=True)
    yield "the small model", in_process(again=False)
    yield "words alone", NgramReader()


class Noting:
    """Keeps the probability of the last message that a reader read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.worth = 0.0

    @property
    def name(self) -> str:
        """See Reader."""
        return self._reader.name

    def read(self, message: Message) -> MessageReading:
        """See Reader."""
        reading = self._reader.read(message)
        self.worth = reading.worth
        return reading


def answers_of(rows: Sequence[Row], reader: Reader) -> dict[str, Row]:
    """Return the miner's result for each message, read after the agent's words before it."""
    found: dict[str, Row] = {}
    noting = Noting(reader)
    for row in rows:
        text = own_text(row["text"])
        noting.worth = 0.0
        turns = (
            Turn(Role.ASSISTANT, Origin.ASSISTANT, row.get("agent_before") or "", "before", row["person"]),
            Turn(
                Role.USER,
                Origin.PROMPT,
                text,
                "said",
                row["person"],
                cwd="/home/dev/till",
                pasted=pasted_ranges(text),
                apart=apart_ranges(text),
                confirmed=True,
            ),
        )
        candidates = mine(turns, reader=noting, project_of=lambda cwd: "project")
        tiers = [_tier(c) for c in candidates]
        lasting = [(t, c) for t, c in zip(tiers, candidates, strict=True) if c.category in LASTING]
        best = min(lasting, key=lambda pair: TIERS.index(pair[0]), default=None)
        found[row["id"]] = {
            "id": row["id"],
            "p": round(noting.worth, 4),
            "tier": best[0] if best else None,
            "category": best[1].category if best else None,
            "scope": best[1].scope if best else None,
            "quote": best[1].statement if best else None,
            "any": min(tiers, key=TIERS.index, default=None),
        }
    return found


def _tier(candidate: Candidate) -> str:
    if candidate.standing_rule:
        return "saved" if candidate.confirmed else "proposed"
    return "proposed" if candidate.claimed_rule else "low"


@dataclass(frozen=True)
class Judged:
    """A labelled message with a reader's result."""

    person: str
    either: bool
    both: bool
    plain: bool
    tier: str | None


def judged(rows: Sequence[Row], answers: Mapping[str, Row]) -> Iterator[Judged]:
    """Yield label and answer of each message. Of two labels one suffices for precision; recall needs both."""
    for row in rows:
        readings = [
            [i for i in part if i["category"] in LASTING] for part in (row["items"], row.get("second", row["items"]))
        ]
        yield Judged(
            row["person"],
            any(readings),
            all(readings),
            all(any(i["tier"] == "high" for i in items) for items in readings),
            answers.get(row["id"], {}).get("tier"),
        )


def figures(messages: Sequence[Judged], tiers: frozenset[str]) -> tuple[float, float, float]:
    """Return precision, recall, and recall of what is said plainly."""
    chosen = [m for m in messages if m.tier in tiers]
    right = sum(m.either for m in chosen)
    return (
        right / len(chosen) if chosen else float("nan"),
        _share(sum(m.both for m in chosen), sum(m.both for m in messages)),
        _share(sum(m.plain for m in chosen), sum(m.plain for m in messages)),
    )


def _share(some: int, of: int) -> float:
    return some / of if of else float("nan")


def interval(messages: Sequence[Judged], tiers: frozenset[str]) -> list[str]:
    """Return 90% intervals of `figures`, people drawn with replacement."""
    people: dict[str, list[Judged]] = {}
    for m in messages:
        people.setdefault(m.person, []).append(m)
    draw, names = random.Random(1), sorted(people)
    draws = [figures([m for n in draw.choices(names, k=len(names)) for m in people[n]], tiers) for _ in range(DRAWS)]
    spans = []
    for values in zip(*draws, strict=True):
        known = sorted(v for v in values if v == v)
        spans.append(f"{known[int(0.05 * len(known))]:.2f}–{known[int(0.95 * (len(known) - 1))]:.2f}" if known else "–")
    return spans


def table(rows: Sequence[Row], found: Sequence[tuple[str, Mapping[str, Row]]]) -> str:
    """Return a markdown table of what is saved, and of what is saved or proposed."""
    lines = ["| read by | what | number | precision | recall | of what is said plainly |", "|---|---|---|---|---|---|"]
    for name, answers in found:
        messages = list(judged(rows, answers))
        for what, tiers in (("saved unasked", {"saved"}), ("saved or proposed", {"saved", "proposed"})):
            values, spans = figures(messages, frozenset(tiers)), interval(messages, frozenset(tiers))
            cells = [f"{v:.2f} ({s})" for v, s in zip(values, spans, strict=True)]
            number = sum(m.tier in tiers for m in messages)
            lines.append(f"| {name} | {what} | {number} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_kind(rows: Sequence[Row], found: Sequence[tuple[str, Mapping[str, Row]]]) -> str:
    """Return a markdown table for examples that have a `kind`."""
    lines = ["| read by | kind | of | saved | proposed | inbox | nothing |", "|---|---|---|---|---|---|---|"]
    for name, answers in found:
        for kind in dict.fromkeys(row["kind"] for row in rows):
            counts = Counter(answers[row["id"]]["any"] for row in rows if row["kind"] == kind)
            cells = [counts[tier] for tier in (*TIERS, None)]
            lines.append(f"| {name} | {kind} | {sum(cells)} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def labels_right(rows: Sequence[Row], answers: Mapping[str, Row]) -> str:
    """Return the shares of what is rightly saved or proposed that have a category and a scope of either label."""
    pairs = []
    for row in rows:
        items = [i for part in (row["items"], row.get("second", row["items"])) for i in part]
        answer = answers[row["id"]]
        if answer["tier"] in ("saved", "proposed") and any(i["category"] in LASTING for i in items):
            pairs.append((items, answer))
    category = _share(sum(a["category"] in {i["category"] for i in items} for items, a in pairs), len(pairs))
    scope = _share(sum(a["scope"] in {i.get("scope") for i in items} for items, a in pairs), len(pairs))
    return f"Of {len(pairs)} that are right, the scope is right for {scope:.2f}, the category for {category:.2f}."


def statements(rows: Sequence[Row], answers: Mapping[str, Row], memories: Path) -> str:
    """Compare our statements with the sentences that their owners would want to read later (memories.jsonl)."""
    wanted: dict[str, list[set[str]]] = {}
    for memory in read_rows(memories):
        wanted.setdefault(memory["key"].partition(":")[0], []).append(set(content_words(memory["statement"])))
    shares = []
    for row in rows:
        answer = answers[row["id"]]
        if row["id"] in wanted and answer["tier"] in ("saved", "proposed"):
            own = content_words(answer["quote"] or "")
            shares.append(max(len(own & words) / max(1, len(words)) for words in wanted[row["id"]]))
    mean = sum(shares) / max(1, len(shares))
    most = sum(share >= 0.6 for share in shares) / max(1, len(shares))
    return (
        f"{len(shares)} statements hold {mean:.2f} of the content words of the sentence that their owner would want;"
        f" {most:.2f} at least .6 of them."
    )


def read_rows(path: Path) -> list[Row]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.reflection", description=__doc__)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--answers", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args(argv)
    data = os.environ.get("MEMORYVAULT_DATA")
    labels = JUDGE if options.judge else options.labels or (Path(data) / "prompts" / "dev.jsonl" if data else None)
    if labels is None:
        print("name a file of labels, or the data's folder in MEMORYVAULT_DATA", file=sys.stderr)
        return 2
    rows = read_rows(labels)
    if options.answers:
        found = [(path.stem, {row["id"]: row for row in read_rows(path)}) for path in options.answers]
        rows = [row for row in rows if all(row["id"] in answers for _, answers in found)]
    else:
        found = [(name, answers_of(rows, reader)) for name, reader in local_readers()]
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in found[0][1].values()), "utf-8")
    worth = sum(any(i["category"] in LASTING for i in row["items"]) for row in rows)
    people = len({row["person"] for row in rows})
    print(f"{len(rows)} messages of {people} people, {worth} worth remembering; 90% intervals by person.\n")
    print(by_kind(rows, found) if all("kind" in row for row in rows) else table(rows, found))
    if all("category" in answer for answer in found[0][1].values()):
        print("\n" + labels_right(rows, found[0][1]))
    memories = labels.with_name("memories.jsonl")
    if memories.exists() and not options.answers:
        print("\n" + statements(rows, found[0][1], memories))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
