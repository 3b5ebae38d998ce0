"""Labelled messages for training and judging the local miner.

Five sources: `labelled/dev.jsonl` of the development data, the labels in `pipelines/mining/training/labels.jsonl`
(record ids only; the words are read from the sessions), our own `examples.jsonl`, and two that were written without a
look at any of these: `fields.jsonl`, messages of many fields of work, and `orders.jsonl`, orders, reports and wishes
for a product beside rules and corrections in the same words. `held_out.jsonl` is only judged on.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..sources.transcripts.claude import ClaudeReader
from ..sources.transcripts.words import pasted_ranges
from ..vault.turn import Origin, Role, Turn

TRAINING = Path(__file__).parent.parent / "pipelines" / "mining" / "training"

Source = Literal["dev", "labels", "examples", "fields", "orders"]

WRITTEN: frozenset[Source] = frozenset({"examples", "fields", "orders"})
"""What was written for the miner: of no session, and so in no fold."""

_ORIGINS = {"slash-args": Origin.COMMAND_ARGS, None: Origin.ASSISTANT}


@dataclass(frozen=True)
class LabelledMessage:
    """One message with its label: preference, correction, fix, idea, workflow or none."""

    turn: Turn
    label: str
    source: Source
    near: bool = False
    """One of our examples that resembles a development message: not used where that message is judged."""
    doubtful: bool = False
    """We could not decide at first: judged on in whole sessions, never trained on."""

    @property
    def by_agent(self) -> bool:
        return self.turn.role is Role.ASSISTANT


@contextmanager
def unpacked_sessions(data: Path) -> Iterator[list[Path]]:
    """The sessions of `sessions.tar.gz`, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="memoryvault-sessions-") as folder:
        with tarfile.open(data / "sessions.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        yield sorted(Path(folder).rglob("*.jsonl"))


def said(path: Path) -> Iterator[Turn]:
    """What the user and the agent said in a session."""
    for turn in ClaudeReader(path):
        if turn.is_users_words or turn.origin is Origin.ASSISTANT:
            yield turn


def labelled(data: Path, sessions: list[Path]) -> list[LabelledMessage]:
    """All labelled messages, in a fixed order. Messages of sessions that are not at hand come from their text alone."""
    wanted = {(row["session"], row["record"]): row for row in _rows(TRAINING / "labels.jsonl")}
    development = _rows(data / "labelled" / "dev.jsonl")
    at_hand: dict[tuple[str, str], Turn] = {}
    ours: list[LabelledMessage] = []
    keys = {(row["session"], row["record"]) for row in development if "record" in row}
    for path in sessions:
        for turn in said(path):
            key = (turn.session, turn.record)
            if key in keys:
                at_hand.setdefault(key, turn)
            elif key in wanted:
                label = wanted.pop(key)
                ours.append(LabelledMessage(turn, label["label"], "labels", doubtful=bool(label.get("doubtful"))))
    found: list[LabelledMessage] = []
    for row in development:
        known = at_hand.get((row["session"], row.get("record", "")))
        found.append(LabelledMessage(known or _turn(row), row["label"], "dev"))
    return [*found, *ours, *_written("examples"), *_written("fields"), *_written("orders")]


def held_out() -> list[LabelledMessage]:
    """Our own examples from fields of work that those for training leave out. Nothing may be chosen by them."""
    return list(_written("examples", "held_out.jsonl"))


def _turn(row: dict[str, str]) -> Turn:
    text = row["text"]
    by_user = row["role"] == "user"
    kind = row.get("kind")
    return Turn(
        role=Role.USER if by_user else Role.ASSISTANT,
        origin=_ORIGINS[kind] if kind in _ORIGINS else Origin(str(kind)),
        text=text,
        record=row.get("record") or row["id"],
        session=row["session"],
        pasted=pasted_ranges(text) if by_user else (),
    )


def _written(source: Source, name: str = "") -> Iterator[LabelledMessage]:
    for number, row in enumerate(_rows(TRAINING / (name or f"{source}.jsonl"))):
        origin = Origin(row["origin"])
        turn = Turn(
            role=Role.ASSISTANT if origin is Origin.ASSISTANT else Role.USER,
            origin=origin,
            text=row["text"],
            record=f"{source}:{number}",
            session="written",
        )
        yield LabelledMessage(turn, row["label"], source, near=bool(row.get("near")))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
