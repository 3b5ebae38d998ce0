"""Judges the packaged miner on prompts that are not ours to keep: `python -m memoryvault.bench.lot FILE`.

FILE has a JSON object a line: `person`, `text`, `label` (preference, correction, idea, fix or none), and where it is
known `before`, the agent's last words before it. Nothing of it is kept. Of the batches from the fourth on
(docs/benchmarks/reflection.md) the repository has the labels under keys that say nothing of the prompts, so that nobody
judges on these again and believes them unseen.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..pipelines.mining import Miner
from ..pipelines.mining.classifier import packaged
from ..sources.transcripts.words import own_text, pasted_ranges
from ..vault.turn import Origin, Role, Turn
from .mining_data import TRAINING, LabelledMessage
from .reflection import Found, by_first_patterns, table

KNOWN_LOTS = tuple(TRAINING / name for name in ("lot4.jsonl", "lot5.jsonl", "lot6.jsonl", "lot7.jsonl"))
"""Key, person (letters), label, where the annotator was not sure `doubtful`, and of some the `second` label."""
KEY_CHARS = 60
"""Of a prompt, in lower case and with single blanks: what its key is made of. The end of some was cut for the lot."""

Row = Mapping[str, str]


def key_of(text: str) -> str:
    """16 hexadecimal digits, under which the label of a prompt is kept."""
    head = " ".join(text.lower().split())[:KEY_CHARS]
    return hashlib.sha256(head.encode("utf-8", "replace")).hexdigest()[:16]


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def prompts(rows: Sequence[Row]) -> list[LabelledMessage]:
    """The prompts of a lot, as if each person were a session."""
    found: list[LabelledMessage] = []
    for number, row in enumerate(rows):
        text = own_text(row["text"])
        turn = Turn(Role.USER, Origin.PROMPT, text, str(number), row["person"], pasted=pasted_ranges(text))
        found.append(LabelledMessage(turn, row["label"], "labels"))
    return found


def by_packaged_miner(lot: Sequence[LabelledMessage], rows: Sequence[Row]) -> Found:
    """What the miner proposes, prompt by prompt, each after the agent's words before it."""
    found: Found = {}
    for item, row in zip(lot, rows, strict=True):
        miner = Miner(classifier=packaged())
        miner.follow(Turn(Role.ASSISTANT, Origin.ASSISTANT, row.get("before") or "", "before", item.turn.session))
        for candidate in miner.feed(item.turn):
            what = found.setdefault((item.turn.session, item.turn.record), set())
            what.add(candidate.category)
            if candidate.standing_rule and candidate.typed:
                what.add("high")
    return found


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        print("usage: python -m memoryvault.bench.lot FILE", file=sys.stderr)
        return 2
    rows = rows_of(Path(argv[0]))
    lot = prompts(rows)
    known = {row["key"] for file in KNOWN_LOTS for row in rows_of(file)}
    seen = sum(key_of(row["text"]) in known for row in rows)
    people = len({item.turn.session for item in lot})
    print(f"{len(lot)} prompts of {people} people, {seen} of them in earlier lots; 95% intervals by people.\n")
    print(table(lot, [("local miner", by_packaged_miner(lot, rows)), ("first patterns", by_first_patterns(lot))]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
