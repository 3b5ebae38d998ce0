"""Read the labelled prompts as training examples with soft targets."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memoryvault.pipelines.reading.sentences import Sentence, sentences

EXAMPLES = Path(__file__).with_name("examples")
OWN_MESSAGES = tuple(EXAMPLES / f"{name}.jsonl" for name in ("typed", "pairs", "people"))
"""Messages of invented people; `people` are 42 with 68 messages each."""
SECOND_READING = Path(__file__).with_name("second_reading.jsonl")
"""7,166 of the messages with the labels of a second reader: most with an item or a doubt, and the most similar ones."""
MORE_LABELS = Path(__file__).with_name("more_labels.jsonl")
"""Labels of 9,051 prompts of 212 more people, from histories of agents in public repositories. An id begins the SHA-256
of the text, which is not stored here. The packaged weights of MiniLM learned from the first 6,897."""
LASTING = ("preference", "correction", "fact", "workflow")
CATEGORIES = (*LASTING, "fix", "idea")
TIERS = ("high", "medium", "low")
CHANNELS = ("core", "prompt", "action")
WORTH = {"high": 1.0, "medium": 0.95, "low": 0.75}
"""Targets by tier: how sure the label is that the message holds something worth remembering."""
DOUBT = 0.85
NONE, NONE_IN_DOUBT = 0.02, 0.12


@dataclass(frozen=True)
class Item:
    category: str
    tier: str
    scope: str | None
    channel: str | None
    start: int
    end: int


@dataclass(frozen=True)
class Message:
    """One labelled message. `weight` scales its loss."""

    id: str
    person: str
    text: str
    before: str
    items: tuple[Item, ...]
    doubtful: bool
    weight: float = 1.0
    sentences: tuple[Sentence, ...] = field(default=(), compare=False)

    def worth(self, categories: Iterable[str]) -> float:
        """Return the target of "this message holds an item of these categories", 0 to 1."""
        tiers = [WORTH[item.tier] for item in self.items if item.category in categories]
        if not tiers:
            return NONE_IN_DOUBT if self.doubtful else NONE
        return max(tiers) * (DOUBT if self.doubtful else 1.0)


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def channels_of(path: Path) -> dict[str, str]:
    """Return the channel of each item by its key, from memories.jsonl; {} without such a file."""
    return {row["key"]: row["channel"] for row in read_rows(path)} if path.exists() else {}


def messages(path: Path, channels: Mapping[str, str] = {}, weight: float = 1.0) -> list[Message]:
    """Read labelled prompts. A quote that is not in its message covers all of it."""
    found = []
    for row in read_rows(path):
        text = row["text"]
        items = []
        for number, item in enumerate(row["items"]):
            start = text.find(item["quote"])
            start, end = (start, start + len(item["quote"])) if start >= 0 else (0, len(text))
            channel = item.get("channel") or channels.get(f"{row['id']}:{number}")
            items.append(Item(item["category"], item["tier"], item.get("scope"), channel, start, end))
        found.append(
            Message(
                row["id"],
                row["person"],
                text,
                row.get("agent_before") or "",
                tuple(items),
                bool(row.get("doubtful")),
                weight,
                tuple(sentences(text)),
            )
        )
    return found


def more_messages(texts: Path) -> list[Message]:
    """Return the messages of MORE_LABELS whose text is in `texts`, JSON lines of id and text; [] without that file."""
    if not texts.exists():
        return []
    by_id = {row["id"]: row["text"] for row in read_rows(texts)}
    found = []
    for row in read_rows(MORE_LABELS):
        if (text := by_id.get(row["id"])) is not None:
            items = tuple(Item(**item) for item in row["items"])
            parts = tuple(sentences(text))
            found.append(Message(row["id"], row["person"], text, "", items, row["doubtful"], sentences=parts))
    return found


def read_again(found: Sequence[Message], path: Path = SECOND_READING) -> list[Message]:
    """Return the messages that have a second reader, with its labels (quotes are stored as positions)."""
    by_id = {m.id: m for m in found}
    again = []
    for row in read_rows(path):
        if (m := by_id.get(row["id"])) is None:
            continue
        items = []
        for item in row["items"]:
            same = [i for i in m.items if i.start < item["end"] and i.end > item["start"]]
            channel = same[0].channel if same else None
            items.append(Item(item["category"], item["tier"], item["scope"], channel, item["start"], item["end"]))
        again.append(replace(m, items=tuple(items), doubtful=row["doubtful"]))
    return again


def for_training(found: Sequence[Message]) -> list[Message]:
    """Return each message once for each of its readers, with equal shares of its weight."""
    again = {m.id: m for m in read_again(found)}
    both = []
    for m in found:
        if m.id in again:
            both += [replace(m, weight=m.weight / 2), replace(again[m.id], weight=m.weight / 2)]
        else:
            both.append(m)
    return both


def fold_of(people: Iterable[str], folds: int) -> dict[str, int]:
    """Assign each person to one of `folds` parts, always in the same way."""
    order = sorted(set(people))
    random.Random(7).shuffle(order)
    return {person: number % folds for number, person in enumerate(order)}


def parts_of(data: Path, folds: int, fold: int | None) -> tuple[list[Message], list[Message]]:
    """Return the labelled messages of the people for training, and of those left out (none without a fold)."""
    channels = channels_of(data / "memories.jsonl")
    found = [m for name in ("train", "dev") for m in messages(data / f"{name}.jsonl", channels)]
    parts = fold_of((m.person for m in found), folds)
    return [m for m in found if parts[m.person] != fold], [m for m in found if parts[m.person] == fold]


def ideas_and_fixes(names: Sequence[str] = ("examples", "fields", "orders"), weight: float = 1.0) -> list[Message]:
    """Return our own examples of ideas, fixes and look-alikes, since few of the labelled prompts hold any."""
    found = []
    for name in names:
        for number, row in enumerate(read_rows(EXAMPLES / f"{name}.jsonl")):
            text, label = row["text"], row["label"]
            if row.get("role") == "assistant" or row.get("origin") in (None, "assistant"):
                continue
            if label not in ("idea", "fix") and name in ("fields", "orders"):
                continue
            items = () if label == "none" else (Item(label, "medium", None, None, 0, len(text)),)
            key = f"{name}:{number}"
            found.append(Message(key, key, text, "", items, False, weight, tuple(sentences(text))))
    return found
