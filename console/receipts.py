"""Receipts of recalls as the page tells them: by session, the last first. They last for 30 days on this device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    count: int = 0
    injected: int = 0
    callers: dict[str, int] = field(default_factory=dict)
    project: str = ""
    slow_ms: float = 0.0
    degraded: int = 0


def receipts_of(state: StatePaths, holding: str = "") -> Iterator[dict[str, Any]]:
    """All that are kept and have the text `holding` as a value, the newest first, each with every field (`_shaped`).

    A torn or foreign line is left out.
    """
    current = Path(state.receipts)
    left = MOST_BYTES
    mark = orjson.dumps(holding) if holding else b""
    for file in (current, *sorted(current.parent.glob(current.name + ".*"), reverse=True)):
        try:
            data = file.read_bytes()[-left:]
        except OSError:
            continue
        left -= len(data)
        for line in reversed(data.splitlines()):
            if mark not in line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict) and isinstance(row.get("at"), str):
                yield _shaped(row)
        if left <= 0:
            return


def by_session(receipts: Iterator[dict[str, Any]], search: str = "") -> list[Recalls]:
    """One line for each session, the last recalled first; `search` is a part of the id, the project or a path."""
    found: dict[str, Recalls] = {}
    sought = search.lower()
    for one in receipts:
        if sought and not _has(one, sought):
            continue
        session = one["session"] or NO_SESSION
        row = found.setdefault(session, Recalls(session, last=one["at"]))
        row.count += 1
        row.injected += len(one["injected"])
        caller = one["caller"] or "–"
        row.callers[caller] = row.callers.get(caller, 0) + 1
        row.project = row.project or one["project"]
        row.slow_ms = max(row.slow_ms, one["ms"].get("total") or 0.0)
        row.degraded += bool(one["degraded"])
    return list(found.values())


def stages(one: Mapping[str, Any]) -> Sequence[tuple[str, float, float]]:
    """(stage, milliseconds, share of the slowest stage) in the order they ran."""
    taken = [(name, ms) for name, ms in one["ms"].items() if name != "total" and ms is not None]
    most = max((ms for _, ms in taken), default=0.0) or 1.0
    return [(name, ms, ms / most) for name, ms in taken]


_TEXTS = ("session", "project", "caller", "query")
_NUMBERS = ("characters", "tokens", "floor")
_SCORES = ("score", "dense", "keyword", "answers", "ordinal")


def _shaped(row: Mapping[str, Any]) -> dict[str, Any]:
    """With every field of a receipt, of its type or None: older versions wrote fewer, and files may be edited."""
    hits, refused = (
        [
            {
                "path": hit["path"],
                "why": str(hit.get("why") or ""),
                **{name: _number(hit.get(name)) for name in _SCORES},
            }
            for hit in _list(row.get(of))
            if isinstance(hit, dict) and isinstance(hit.get("path"), str)
        ]
        for of in ("hits", "refused")
    )
    taken = row.get("ms")
    return {
        "at": row["at"],
        **{name: str(row[name]) if row.get(name) else "" for name in _TEXTS},
        **{name: _number(row.get(name)) for name in _NUMBERS},
        "hits": hits,
        "refused": refused,
        "injected": [path for path in _list(row.get("injected")) if isinstance(path, str)],
        "degraded": [code for code in _list(row.get("degraded")) if isinstance(code, str)],
        "ms": {str(name): _number(ms) for name, ms in taken.items()} if isinstance(taken, dict) else {},
    }


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _has(one: Mapping[str, Any], sought: str) -> bool:
    told = (one["session"], one["project"], one["query"], *(hit["path"] for hit in one["hits"]))
    return any(sought in text.lower() for text in told)
