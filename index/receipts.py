"""Receipts: one JSON line for each recall, so that a user can see what came back and why.

A prompt may hold anything, so only its hash is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .engine import Hit, RecallResult, Refused

TRIAL_CALLER = "doctor"
"""Who asks only to see whether it works: its recall is nobody's last one."""


def query_hash(text: str) -> str:
    """16 hexadecimal digits: enough to tell two prompts apart, nothing to read."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def receipt(
    text: str,
    result: RecallResult,
    *,
    caller: str,
    now: datetime | None = None,
    session: str | None = None,
    project: str | None = None,
    injected: Iterable[str] = (),
    tokens: int | None = None,
) -> dict[str, Any]:
    """What one recall was: the hits with both scores, what was printed, milliseconds by stage."""
    return {
        "at": (now or datetime.now(UTC)).isoformat(timespec="milliseconds"),
        "caller": caller,
        "session": session or None,
        "project": project or None,
        "query": query_hash(text),
        "characters": len(text),
        "hits": [_scores(hit) for hit in result.hits],
        "refused": [{**_scores(one), "why": one.why} for one in result.refused],
        "floor": result.floor,
        "injected": list(injected),
        "tokens": tokens,
        "ms": dict(result.timings_ms),
        "degraded": list(result.degraded),
    }


def append_receipt(path: Path, line: Mapping[str, Any]) -> None:
    """Append in one write. A log that cannot be written is no reason to fail a recall."""
    data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(handle, data)
    except OSError:
        return
    finally:
        os.close(handle)


def read_receipts(path: Path, *, session: str | None = None, last: int | None = None) -> Sequence[dict[str, Any]]:
    """Receipts in the order they were written; a torn or foreign line is left out."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and (session is None or row.get("session") == session):
            found.append(row)
    return found[-last:] if last is not None else found


def new_mark(one: Mapping[str, Any], path: str, *, useful: bool) -> dict[str, Any]:
    """A user's word on one hit of a receipt; they are kept in a file of their own (`append_receipt`)."""
    return {"at": one.get("at"), "query": one.get("query"), "path": path, "useful": useful}


def read_marks(path: Path) -> Sequence[dict[str, Any]]:
    """Marks in the order they were made."""
    return [row for row in read_receipts(path) if isinstance(row.get("useful"), bool)]


def marks_of(marks: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], bool]:
    """Useful or not, by time of the recall and path; the last word counts."""
    return {(str(mark.get("at")), str(mark.get("path"))): bool(mark["useful"]) for mark in marks}


def _scores(hit: Hit | Refused) -> dict[str, Any]:
    def short(value: float | None) -> float | None:
        return None if value is None else round(value, 4)

    return {
        "path": hit.path,
        "score": short(hit.score),
        "dense": short(hit.dense),
        "keyword": short(hit.keyword),
        "answers": hit.answers,
        **({"ordinal": hit.ordinal} if isinstance(hit, Hit) else {}),
    }
