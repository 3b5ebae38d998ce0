"""Sum the tokens of a session from the usage that the host records with each answer. Bad lines are skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from .lines import as_text, complete_lines, holds_match, parse_object

ACTIVE_GAP_SECONDS = 300.0
"""A longer gap between two records is a pause, and not counted as active."""
START_SECONDS = 10.0
"""Most time between a session's own first record and the start that a hook saw."""
COPY_GAP_SECONDS = 1.0
"""Less time lies between two records that Codex copies into the transcript of a fork."""
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


def session_usage(path: Path, host: str, own_from: int = 0) -> SessionUsage:
    """Sum the usage of one transcript of Claude Code or Codex; empty for other hosts. Raises OSError.

    The sub-agents of Codex, whose transcripts do not lie with the session's, are not counted.

    `own_from`: the byte of a transcript of Claude Code at which the session itself begins, see `copied_bytes`.
    """
    if host == "codex":
        return _codex(path)
    return _claude(path, own_from) if host == "claude" else SessionUsage()


def copied_bytes(path: Path, earlier: Iterable[Path], started_at: str = "") -> int:
    """Count the bytes at a transcript's beginning that are copied from one of the `earlier` transcripts.

    A session of Claude Code that was forked, or resumed under another id, begins with the records of the first session,
    which keep their `uuid` and time. The earlier transcripts may be gigabytes, so they are only read where the first
    record is older than `started_at` (ISO 8601; '' if unknown). Raises OSError for `path`.
    """
    found = next(_with_uuid(path), None)
    if found is None or _is_since(found.record.get("timestamp"), started_at):
        return 0
    first = found.uuid
    wanted, known = re.compile(re.escape(first.encode("utf-8", "replace"))), set[str]()
    for other in earlier:
        with suppress(OSError):
            if holds_match(other, wanted, len(first)):
                known.update(one.uuid for one in _with_uuid(other))
    copied = 0
    for one in _with_uuid(path):
        if one.uuid not in known:
            break
        copied = one.end
    return copied


class _Identified(NamedTuple):
    """A record with a `uuid`, and where it ends."""

    end: int
    uuid: str
    record: dict[str, Any]


def _with_uuid(path: Path) -> Iterator[_Identified]:
    for line in complete_lines(path):
        record = (parse_object(line.data) or {}) if b'"uuid"' in line.data else {}
        uuid = record.get("uuid")
        if isinstance(uuid, str) and uuid:
            yield _Identified(line.end, uuid, record)


def _is_since(timestamp: object, started_at: str) -> bool:
    """Whether a record was written after the session began; a hook sees the start a moment later than the host."""
    with suppress(ValueError, OverflowError):
        at, start = (datetime.fromisoformat(as_text(time)).astimezone() for time in (timestamp, started_at))
        return (start - at).total_seconds() < START_SECONDS
    return False


def session_bytes(path: Path) -> int:
    """Bytes of all files that `session_usage` reads; a change of it shows that they changed. Raises OSError."""
    return path.stat().st_size + sum(part.stat().st_size for part in _subagents(path))


def _subagents(path: Path) -> list[Path]:
    """Transcripts of the sub-agents; those of workflows lie deeper, in workflows/wf_…/."""
    return sorted((path.with_suffix("") / "subagents").rglob("agent-*.jsonl"))


def _time_of(line: bytes) -> datetime | None:
    match = _TIMESTAMP.search(line)
    if match is not None:
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(match[1].decode("ascii", "replace")).astimezone()
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


def _lines(path: Path, offset: int = 0) -> Iterator[bytes]:
    for line in complete_lines(path, offset):
        if not line.too_long:
            yield line.data


def _claude(path: Path, own_from: int) -> SessionUsage:
    clock = _Clock()
    answers: dict[str, tuple[int, ...]] = {}
    models: dict[str, None] = {}
    for part in (path, *_subagents(path)):
        for data in _lines(part, own_from if part is path else 0):
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
    clock, copied = _Clock(), _CopiedByCodex()
    running, sums = Counter[str](), Counter[str]()
    answers = 0
    models: dict[str, bool] = {}
    """By the model's name, in order: whether only copied records name it."""
    for data in _lines(path):
        if not (is_copy := copied.holds(data)):
            clock.see(data)
        if b'"token_count"' not in data and b'"turn_context"' not in data:
            continue
        record = parse_object(data) or {}
        payload = record.get("payload")
        if not isinstance(payload, dict):
            continue
        if record.get("type") == "turn_context" and isinstance(payload.get("model"), str):
            if is_copy:
                models.pop(payload["model"], None)  # Keep the last copied one at the end.
            models[payload["model"]] = is_copy
        info = payload.get("info")
        found = (
            info.get("total_token_usage") if payload.get("type") == "token_count" and isinstance(info, dict) else None
        )
        if not isinstance(found, dict):
            continue
        total = Counter({name: _count(found.get(name)) for name in _CODEX_COUNTS})
        if is_copy or total == running:
            running = total
            continue
        # A running total; older versions restart it when the session is resumed.
        since = Counter[str]() if any(total[name] < running[name] for name in _CODEX_COUNTS) else running
        sums.update({name: total[name] - since[name] for name in _CODEX_COUNTS})
        running = total
        answers += 1
    cached = sums["cached_input_tokens"]
    # In a fork that is prompted at once the first own turn looks like a copy.
    own_models = [model for model, is_copied in models.items() if not is_copied] or list(models)[-1:]
    return SessionUsage(
        max(0, sums["input_tokens"] - cached),
        sums["output_tokens"],
        0,
        cached,
        answers,
        tuple(own_models),
        clock.first,
        clock.wall,
        round(clock.active),
    )


class _CopiedByCodex:
    """Recognise the lines at the beginning of a fork's transcript that Codex copied from the first session.

    The copies are written at once: with the time of the fork, or with their own. An answer takes longer than that.
    """

    def __init__(self) -> None:
        self._is_first, self._is_copy = True, False
        self._last: datetime | None = None

    def holds(self, line: bytes) -> bool:
        """Whether the next line is a copy."""
        if self._is_first:
            meta = (parse_object(line) or {}).get("payload")
            self._is_first, self._is_copy = False, isinstance(meta, dict) and bool(meta.get("forked_from_id"))
        at = _time_of(line) if self._is_copy else None
        if at is not None:
            self._is_copy = self._last is None or (at - self._last).total_seconds() < COPY_GAP_SECONDS
            self._last = at if self._last is None else max(at, self._last)
        return self._is_copy


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
