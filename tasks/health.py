"""What `memory health` tells: counts of the vault, the queue, the index, real hook times, memory, and warnings."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from ..vault.days import SECONDS_PER_DAY
from ..vault.marker import REFLECTED, START, list_markers, marker_path
from ..vault.wording import counted
from .pending_counts import PendingCounts
from .reverse_lines import lines_from_end

INBOX_LIMIT = 50
INCUBATOR_LIMIT = 20
SILENT_DAYS = 7
HOOK_DAYS = 7
HOOK_BUDGETS_MS: Mapping[str, float] = {"SessionStart": 500.0, "UserPromptSubmit": 300.0}
OTHER_HOOKS_MS = 100.0
"""The design's budgets, by event; a test compares them with those that the hooks themselves keep."""
OLDER_IN_A_ROW = 200
"""Lines that are too old, after which the log is read no further back. One alone may be of a clock that was wrong."""
TRIAL_SESSION = "memory-init-"
"""How the sessions begin by which `memory init` times the hooks: no user's, so neither doctor nor health count them."""


@dataclass(frozen=True)
class HookTimes:
    """One event's hooks of the last days: how many, how long, how many over the budget or cut off at it."""

    event: str
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    budget_ms: float
    over_budget: int
    degraded: int


def last_reflection(harness: str, done: Iterable[float]) -> float | None:
    """Unix time at which a session was last reflected; `done` are times of such jobs."""
    times = [*done]
    for session in list_markers(harness, REFLECTED):
        try:
            times.append(os.stat(marker_path(harness, session, REFLECTED)).st_mtime)
        except OSError:
            continue
    return max(times, default=None)


def oldest_waiting(harness: str) -> float | None:
    """Unix time of the last event of the session that has waited longest for its reflection."""
    times = []
    for session in list_markers(harness, START):
        try:
            times.append(os.stat(marker_path(harness, session, START)).st_mtime)
        except OSError:
            continue
    return min(times, default=None)


def hook_times(lines: Iterable[Mapping[str, Any]], since: float) -> list[HookTimes]:
    """Percentiles (nearest rank) by event of the hooks that ran since that unix time."""
    taken: dict[str, list[float]] = {}
    degraded: Counter[str] = Counter()
    for line in lines:
        milliseconds, event = line.get("ms"), str(line.get("hook"))
        is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
        if line.get("event") == "hook" and is_number and time_of(line) >= since:
            taken.setdefault(event, []).append(float(str(milliseconds)))
            degraded[event] += "degraded" in line
    return [_summary(event, values, degraded[event]) for event, values in sorted(taken.items())]


def _summary(event: str, values: Sequence[float], degraded: int) -> HookTimes:
    budget = budget_ms(event)
    return HookTimes(
        event=event,
        count=len(values),
        p50_ms=percentile(values, 0.50),
        p95_ms=percentile(values, 0.95),
        p99_ms=percentile(values, 0.99),
        budget_ms=budget,
        over_budget=sum(value > budget for value in values),
        degraded=degraded,
    )


def budget_ms(event: str) -> float:
    """What a hook of this event may take, in milliseconds."""
    return HOOK_BUDGETS_MS.get(event, OTHER_HOOKS_MS)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: a value that was measured, never one in between."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def log_lines(log_file: Path, since: float) -> Iterator[Mapping[str, Any]]:
    """Lines of hooks since then, of the log and of what was rotated out of it, in the order they were written.

    Torn ones, and trials of hooks, are left out. Of each file only the end is read that has such lines.
    """
    rotated = sorted(log_file.parent.glob(log_file.name + ".*"))
    for path in (*rotated, log_file):
        found: list[Mapping[str, Any]] = []
        with suppress(OSError):
            if path.stat().st_mtime >= since:
                found.extend(_hooks_from_end(path, since))
        yield from reversed(found)


def _hooks_from_end(path: Path, since: float) -> Iterator[Mapping[str, Any]]:
    older = 0
    for raw in lines_from_end(path):
        if b'"hook"' not in raw:
            continue
        line = _parsed(raw)
        if not isinstance(line, dict):
            continue
        if time_of(line) < since:
            older += 1
            if older == OLDER_IN_A_ROW:
                return
            continue
        older = 0
        if not str(line.get("session", "")).startswith(TRIAL_SESSION):
            yield line


def _parsed(raw: bytes) -> object:
    """A line's value, None for one that is torn."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        with suppress(ValueError):  # the standard library also takes half of a pair, which names of files may have
            return json.loads(raw)
    return None


def time_of(line: Mapping[str, Any]) -> float:
    """Unix time of a line of the log; 0 when it has none."""
    try:
        return datetime.fromisoformat(str(line.get("time"))).timestamp()
    except ValueError:
        return 0.0


def resident_megabytes(pid: int) -> float | None:
    """Memory that a process holds now; None when it is gone or cannot be asked."""
    platform: str = sys.platform  # annotated: mypy would take the other branch for dead
    try:
        if platform == "linux":
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS")), None)
        said = subprocess.run(["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return int(said.stdout) / 1024
    except (OSError, ValueError):
        return None


def warnings_of(
    pending: PendingCounts | None, last: float | None, waiting: float | None, hooks: Iterable[HookTimes], now: float
) -> list[str]:
    """What needs the user, one line each."""
    found = []
    if pending is not None and pending.inbox > INBOX_LIMIT:
        found.append(f"the inbox holds {pending.inbox} entries, more than {INBOX_LIMIT}: `memory inbox`")
    if pending is not None and pending.ideas > INCUBATOR_LIMIT:
        found.append(f"the incubator holds {pending.ideas} ideas, more than {INCUBATOR_LIMIT}: `memory idea list`")
    # Never reflected: silent since the session that waits longest, if any does.
    since = last if last is not None else waiting
    if since is not None and now - since > SILENT_DAYS * SECONDS_PER_DAY:
        days = int((now - since) // SECONDS_PER_DAY)
        found.append(f"nothing was reflected for {counted(days, 'day')}: `memory doctor`")
    for times in hooks:
        if times.p95_ms > times.budget_ms:
            found.append(
                f"{times.event} takes {times.p95_ms:.0f} ms (p95), its budget is {times.budget_ms:.0f} ms: "
                "`memory doctor`"
            )
    return found


def why_unheard(history: Sequence[Mapping[str, Any]]) -> str | None:
    """The warning that the model had no part in a reflection with this history; None when it had, or none is set."""
    result = history[-1].get("result") if history else None
    model = result.get("model") if isinstance(result, Mapping) else None
    if not isinstance(model, Mapping):
        return None
    why = model.get("failed") or model.get("refused")
    return f"the last session was mined without {model.get('miner')} or not all by it: {why}" if why else None


def week_before(now: float | None = None) -> float:
    """The unix time from which on hooks count."""
    return (time.time() if now is None else now) - HOOK_DAYS * SECONDS_PER_DAY
