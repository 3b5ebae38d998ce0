"""Pairs of statements, in the lines of `examples/`: a statement, and others by how they are related to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = Path(__file__).parent / "examples"
REAL_PAIRS = Path(__file__).with_name("real_pairs.jsonl")
"""Pairs of statements of one person, by their keys in `memories.jsonl`, with a reader's label: S the same, C a
contradiction, O neither; with a question mark where O is as good."""
LABELS = {"near": 0, "same": 0, "contradicts": 1, "other": 2}
"""Of each list of a line, the number of its logit in index/mpnet.py."""


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_examples(*names: str) -> list[dict]:
    """Return the lines of these files of `examples/`."""
    return [line for name in names for line in read_lines(EXAMPLES / f"{name}.jsonl")]


def labelled(lines: Sequence[dict]) -> list[tuple[str, str, str]]:
    """Return list, statement and other statement of all pairs of the lines."""
    return [(name, line["statement"], other) for line in lines for name in LABELS for other in line[name]]


def real_pairs(memories: Path, half: int) -> list[tuple[str, str, str]]:
    """Return label, statement and other statement of the pairs of half of the people, 0 or 1."""
    rows = {row["key"]: row for row in read_lines(memories)}
    return [
        (pair["label"], rows[pair["one"]]["statement"], rows[pair["other"]]["statement"])
        for pair in read_lines(REAL_PAIRS)
        if hashlib.sha256(rows[pair["one"]]["person"].encode()).digest()[0] % 2 == half
    ]
