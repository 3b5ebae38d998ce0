"""Sum the tokens of a session from the usage that the host records with each answer. Bad lines are skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from .lines import as_object, complete_lines, parse_object

ACTIVE_GAP_SECONDS = 300.0
"""A longer gap between two records is a pause, and not counted as active."""
START_SECONDS = 10.0
"""Most time between a session's first record and the start that a hook saw."""
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]{10,40})"')
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CODEX_COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens")


@dataclass(frozen=True)
class SessionUsage:
    """Sums over one session and its sub-agents. `input_tokens` are those not read from a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    answers: int = 0
    models: tuple[str, ...] = ()
    began: datetime | None = None
    wall_seconds: int = 0
    active_seconds: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether no usage was recorded, so that the cost is unknown."""
        return self.answers == 0


def session_usage(path: Path, host: str, started_at: str = "") -> SessionUsage:
    """Sum the usage of one transcript of Claude Code or Codex; empty for other hosts. Raises OSError.

    The sub-agents of Codex, whose transcripts do not lie with the session's, are not counted. `started_at` (ISO 8601,
    '' if unknown): what Claude Code recorded earlier is not counted, since a fork begins with copied records, which
    keep their times.
    """
    if host == "codex":
        return _codex(path)
    return _claude(path, started_at) if host == "claude" else SessionUsage()


def session_bytes(path: Path) -> int:
    """Bytes of all files that `session_usage` reads; a change of it shows that they changed. Raises OSError."""
    return path.stat().st_size + sum(part.stat().st_size for part in _subagents(path))


def _subagents(path: Path) -> list[Path]:
    """Transcripts of the sub-agents; those of workflows lie deeper, in workflows/wf_…/."""
    return sorted((path.with_suffix("") / "subagents").rglob("agent-*.jsonl"))


def _time_of(line: bytes) -> datetime | None:
    match = _TIMESTAMP.search(line)
    return _time(match[1].decode("ascii", "replace")) if match is not None else None


def _time(text: str) -> datetime | None:
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).astimezone()
    return None


class _Clock:
    """First and last time of the lines, and the seconds between them without pauses."""

    def __init__(self) -> None:
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.active = 0.0

    def see(self, line: bytes) -> None:
        at = _time_of(line)
        if at is None:
            return
        if self.last is not None and at > self.last:
            gap = (at - self.last).total_seconds()
            self.active += gap if gap <= ACTIVE_GAP_SECONDS else 0.0
        self.first = at if self.first is None else min(self.first, at)
        self.last = at if self.last is None else max(self.last, at)

    @property
    def wall(self) -> int:
        return round((self.last - self.first).total_seconds()) if self.first and self.last else 0


def _lines(path: Path) -> Iterator[bytes]:
    for line in complete_lines(path):
        if not line.too_long:
            yield line.data


def _claude(path: Path, started_at: str) -> SessionUsage:
    begin = _time(started_at)
    clock = _Clock()
    answers: dict[str, tuple[int, ...]] = {}
    models: dict[str, None] = {}
    for part in (path, *_subagents(path)):
        for data in _lines(part):
            if begin and (at := _time_of(data)) and (begin - at).total_seconds() >= START_SECONDS:
                continue
            if part is path:
                clock.see(data)
            if b'"usage"' not in data:
                continue
            message = (parse_object(data) or {}).get("message")
            usage = message.get("usage") if isinstance(message, dict) else None
            if not isinstance(message, dict) or not isinstance(usage, dict) or message.get("role") != "assistant":
                continue
            model = message.get("model")
            if isinstance(model, str) and model.startswith("<"):  # <synthetic>: an error message of the host
                continue
            # An answer is written once for each of its blocks, with its usage so far; the last one is complete.
            name = str(message.get("id") or len(answers))
            counts = tuple(_count(usage.get(key)) for key in _COUNTS)
            answers[name] = max(answers.get(name, counts), counts, key=sum)
            if isinstance(model, str):
                models[model] = None
    fresh, said, stored, cached = (sum(counts[place] for counts in answers.values()) for place in range(len(_COUNTS)))
    return SessionUsage(
        fresh, said, stored, cached, len(answers), tuple(models), clock.first, clock.wall, round(clock.active)
    )


def _codex(path: Path) -> SessionUsage:
    clock = _Clock()
    running, sums = Counter[str](), Counter[str]()
    answers = 0
    models: dict[str, None] = {}
    for data in _lines(path):
        clock.see(data)
        if b'"token_count"' not in data and b'"turn_context"' not in data:
            continue
        record = parse_object(data) or {}
        payload = as_object(record.get("payload"))
        if record.get("type") == "turn_context" and isinstance(payload.get("model"), str):
            models[payload["model"]] = None
        found = (
            as_object(payload.get("info")).get("total_token_usage") if payload.get("type") == "token_count" else None
        )
        if not isinstance(found, dict):
            continue
        total = Counter({name: _count(found.get(name)) for name in _CODEX_COUNTS})
        if total == running:
            continue
        # A running total; older versions restart it when the session is resumed.
        since = Counter[str]() if any(total[name] < running[name] for name in _CODEX_COUNTS) else running
        sums.update({name: total[name] - since[name] for name in _CODEX_COUNTS})
        running = total
        answers += 1
    cached = sums["cached_input_tokens"]
    fresh = max(0, sums["input_tokens"] - cached)
    return SessionUsage(
        fresh, sums["output_tokens"], 0, cached, answers, tuple(models), clock.first, clock.wall, round(clock.active)
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
