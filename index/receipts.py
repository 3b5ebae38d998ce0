"""Receipts: one JSON line for each recall, so that a user can see what was returned and why.

Only the hash of a prompt is kept, since a prompt may hold anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..runtime.hooklog import append_line
from ..runtime.interpreter import short_hash
from ..runtime.json_text import json_objects
from ..vault.wording import counted
from .engine import Hit, RecallResult, Rejection

TRIAL_CALLER = "doctor"
"""The caller of a self-test: its recall does not count as the last one of a user or session."""


WHY_NOT_SHOWN: Mapping[str, str] = {
    "below-floor": "below the floor",
    "no-answer": "does not answer the prompt",
    "says-the-same": "says the same as a better one",
    "file-gone": "its file is gone or may not be shown any more",
}
"""Reason of a rejection, as receipts have it -> in words."""


def query_hash(text: str) -> str:
    """Return 16 hexadecimal digits: enough to distinguish prompts, and unreadable."""
    return short_hash(text.encode("utf-8", "replace"))


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
    given_before: int | None = None,
) -> dict[str, Any]:
    """Describe one recall: its hits and rejections with their scores, what was printed, milliseconds by stage.

    `given_before`: number of entries that were not searched, since the session has them; None when it is not known.
    """
    return {
        "at": (now or datetime.now(UTC)).isoformat(timespec="milliseconds"),
        "caller": caller,
        "session": session or None,
        "project": project or None,
        "query": query_hash(text),
        "characters": len(text),
        "hits": [_scores(hit) for hit in result.hits],
        "refused": [{**_scores(entry), "why": entry.reason} for entry in result.rejections],
        "floor": result.threshold,
        "injected": list(injected),
        "tokens": tokens,
        "given_before": given_before,
        "ms": dict(result.timings_ms),
        "degraded": list(result.degraded),
    }


def append_receipt(path: Path, line: Mapping[str, Any]) -> None:
    """Append a line of JSON in one write. Does nothing where the file cannot be written: a recall must not fail by
    it."""
    append_line(str(path), json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def read_receipts(path: Path) -> Sequence[dict[str, Any]]:
    """Receipts in the order they were written; lines that are no JSON object are left out."""
    try:
        return [*json_objects(path.read_bytes().splitlines())]
    except OSError:
        return []


TOLD = {
    "": "told with the result of a tool call",
    "remind": "a tool call was refused once",
    "ask": "the user was asked about a tool call",
    "deny": "a tool call was refused",
}


def describe_told(one: Mapping[str, Any]) -> str:
    """Describe a receipt of entries that were given without a prompt; '' for a receipt of a recall."""
    match one.get("channel"):
        case "core":
            return "given at the session's start"
        case "action" if one.get("caller") == "PostToolUseFailure":
            return "told after a tool call that failed"
        case "action":
            return TOLD.get(str(one.get("guard") or ""), TOLD[""])
    return ""


def count_given_before(one: Mapping[str, Any]) -> int:
    """Return how many entries this recall left out because the session already has them; 0 where it does not say."""
    said = one.get("given_before")
    return said if isinstance(said, int) and not isinstance(said, bool) else 0


def describe_nothing_shown(floor: float | None, given_before: int) -> str:
    """Explain why a recall without a hit gave nothing. `floor`: in log-odds."""
    of_what = f" of {floor:+.1f}" if floor is not None else ""
    entry = "other entry" if given_before else "entry"
    return f"nothing was shown: no {entry} reached the floor{of_what} and answers the prompt"


def describe_given_before(count: int) -> str:
    """Put the result of `count_given_before` into words."""
    one, many = "entry that the session was given before was", "entries that the session was given before were"
    return f"{counted(count, one, many)} not considered"


def _scores(hit: Hit | Rejection) -> dict[str, Any]:
    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 4)

    return {
        "path": hit.path,
        "score": rounded(hit.score),
        "dense": rounded(hit.dense),
        "keyword": rounded(hit.keyword),
        "answers": hit.answers,
        **({"ordinal": hit.ordinal} if isinstance(hit, Hit) else {}),
    }
