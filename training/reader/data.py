"""The labelled prompts as training examples: windows of sentences with soft targets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoryvault.pipelines.reading.sentences import Sentence, sentences

LASTING = ("preference", "correction", "fact", "workflow")
CATEGORIES = (*LASTING, "fix", "idea")
TIERS = ("high", "medium", "low")
CHANNELS = ("core", "prompt", "action")
WORTH = {"high": 1.0, "medium": 0.95, "low": 0.75}
"""How sure the label is that the message holds something worth remembering."""
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
        """Target of "this message holds an item of these categories", 0 to 1."""
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
    """Key of an item -> its channel, from memories.jsonl; {} when there is no such file."""
    return {row["key"]: row["channel"] for row in read_rows(path)} if path.exists() else {}


def messages(path: Path, channels: Mapping[str, str] = {}, weight: float = 1.0) -> list[Message]:
    """Read labelled prompts. A quote that is not in its message is placed over all of it."""
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


def written(folder: Path, weight: float) -> list[Message]:
    """The project's older examples: one label for a whole message, no quote and no tier."""
    found = []
    for name in ("examples", "fields", "orders"):
        for number, row in enumerate(read_rows(folder / f"{name}.jsonl")):
            if row.get("role") == "assistant" or row.get("origin") in (None, "assistant"):
                continue
            text, label = row["text"], row["label"]
            if name != "examples" and label not in ("idea", "fix"):
                continue
            items = () if label == "none" else (Item(label, "medium", None, None, 0, len(text)),)
            found.append(
                Message(f"{name}:{number}", f"{name}:{number}", text, "", items, False, weight, tuple(sentences(text)))
            )
    return found
