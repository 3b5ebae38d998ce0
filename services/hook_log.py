"""The hooks in the log: each one's run, and how long those of an event took, against the budgets they have."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ..runtime.days import SECONDS_PER_DAY
from .reverse_lines import lines_from_end

HOOK_DAYS = 7
HOOK_BUDGETS_MS: Mapping[str, float] = {"SessionStart": 500.0, "UserPromptSubmit": 300.0}
OTHER_HOOKS_MS = 100.0
"""The design's budgets, by event; a test compares them with those that the hooks themselves keep."""
OLDER_IN_A_ROW = 200
"""Lines that are too old, after which the log is read no further back. One alone may be of a clock that was wrong."""
TRIAL_SESSION = "memory-init-"
"""How the sessions begin by which `memory init` times the hooks: no user's, so neither doctor nor health count them."""


class HookRun(NamedTuple):
    """One hook that ran, as its line of the log tells it."""

    event: str
    at: float
    """Unix time; 0 where the line has none."""
    ms: float | None
    result: str | None
    is_degraded: bool
    """Was it cut off at its budget, or did it go without something?"""


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


def hook_times(runs: Iterable[HookRun], since: float) -> list[HookTimes]:
    """Percentiles (nearest rank) by event of the hooks that ran since that unix time."""
    taken: dict[str, list[float]] = {}
    degraded: Counter[str] = Counter()
    for run in runs:
        if run.ms is not None and run.at >= since:
            taken.setdefault(run.event, []).append(float(run.ms))
            degraded[run.event] += run.is_degraded
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


def read_hook_runs(log_file: Path, since: float) -> Iterator[HookRun]:
    """Hooks that ran since then, of the log and of what was rotated out of it, in the order they were written.

    Torn lines, and trials of hooks, are left out. Of each file only the end is read that has such lines.
    """
    rotated = sorted(log_file.parent.glob(log_file.name + ".*"))
    for path in (*rotated, log_file):
        found: list[HookRun] = []
        with suppress(OSError):
            if path.stat().st_mtime >= since:
                found.extend(_runs_from_end(path, since))
        yield from reversed(found)


def _runs_from_end(path: Path, since: float) -> Iterator[HookRun]:
    older = 0
    for raw in lines_from_end(path):
        if b'"hook"' not in raw:
            continue
        line = _parsed(raw)
        if not isinstance(line, dict) or (run := run_of(line)) is None:
            continue
        if run.at < since:
            older += 1
            if older == OLDER_IN_A_ROW:
                return
            continue
        older = 0
        if not str(line.get("session", "")).startswith(TRIAL_SESSION):
            yield run


def run_of(line: Mapping[str, Any]) -> HookRun | None:
    """The run that a line of the log tells of; None if it tells of something else."""
    if line.get("event") != "hook":
        return None
    ms, result = line.get("duration_ms"), line.get("result")
    is_number = isinstance(ms, int | float) and not isinstance(ms, bool)
    return HookRun(
        event=str(line.get("hook")),
        at=_time_of(line),
        ms=ms if is_number else None,
        result=None if result is None else str(result),
        is_degraded="degraded" in line,
    )


def _parsed(raw: bytes) -> object:
    """A line's value, None for one that is torn."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        with suppress(ValueError):  # the standard library also takes half of a pair, which names of files may have
            return json.loads(raw)
    return None


def _time_of(line: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(line.get("time"))).timestamp()
    except ValueError:
        return 0.0


def week_before(now: float) -> float:
    """The unix time from which on hooks count."""
    return now - HOOK_DAYS * SECONDS_PER_DAY
