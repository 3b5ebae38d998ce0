"""Receipts of recalls as the page tells them: by session, the last first. They last for 30 days on this device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from ..vault.layout import StatePaths

MOST_BYTES = 64_000_000
"""Of the newest receipts; a receipt has one to two thousand bytes."""
NO_SESSION = "none"
"""Stands for the session of recalls by commands, agents' tools and this console."""


@dataclass
class Recalls:
    """What one session was given. `last` is ISO, UTC."""

    session: str
    last: str = ""
    first: str = ""
    count: int = 0
    injected: int = 0
    callers: dict[str, int] = field(default_factory=dict)
    project: str = ""
    slow_ms: float = 0.0
    degraded: int = 0


def receipts_of(state: StatePaths) -> Iterator[dict[str, Any]]:
    """All that are kept, the newest first; a torn or foreign line is left out."""
    current = Path(state.receipts)
    left = MOST_BYTES
    for file in (current, *sorted(current.parent.glob(current.name + ".*"), reverse=True)):
        try:
            data = file.read_bytes()[-left:]
        except OSError:
            continue
        left -= len(data)
        for line in reversed(data.splitlines()):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict) and isinstance(row.get("at"), str):
                yield row
        if left <= 0:
            return


def by_session(receipts: Iterator[dict[str, Any]], search: str = "") -> list[Recalls]:
    """One line for each session, the last recalled first; `search` is a part of the id, the project or a path."""
    found: dict[str, Recalls] = {}
    sought = search.lower()
    for one in receipts:
        if sought and not _has(one, sought):
            continue
        session = str(one.get("session") or NO_SESSION)
        row = found.setdefault(session, Recalls(session, last=one["at"]))
        row.first = one["at"]
        row.count += 1
        row.injected += len(one.get("injected") or ())
        caller = str(one.get("caller") or "-")
        row.callers[caller] = row.callers.get(caller, 0) + 1
        row.project = row.project or str(one.get("project") or "")
        row.slow_ms = max(row.slow_ms, milliseconds(one))
        row.degraded += bool(one.get("degraded"))
    return list(found.values())


def milliseconds(one: Mapping[str, Any]) -> float:
    """How long the recall took, 0 when it does not say."""
    total = (one.get("ms") or {}).get("total")
    return float(total) if isinstance(total, int | float) else 0.0


def stages(one: Mapping[str, Any]) -> Sequence[tuple[str, float, float]]:
    """(stage, milliseconds, share of the slowest stage) in the order they ran."""
    taken = [
        (str(name), float(ms))
        for name, ms in (one.get("ms") or {}).items()
        if name != "total" and isinstance(ms, int | float)
    ]
    most = max((ms for _, ms in taken), default=0.0) or 1.0
    return [(name, ms, ms / most) for name, ms in taken]


def at_seconds(one: Mapping[str, Any]) -> float:
    """Unix time of the recall."""
    try:
        return datetime.fromisoformat(str(one.get("at"))).timestamp()
    except ValueError:
        return 0.0


def _has(one: Mapping[str, Any], sought: str) -> bool:
    told = [str(one.get("session") or ""), str(one.get("project") or ""), str(one.get("query") or "")]
    hits = (str(hit.get("path", "")) for hit in one.get("hits") or () if isinstance(hit, dict))
    return any(sought in text.lower() for text in (*told, *hits))
