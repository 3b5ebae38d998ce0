"""Read hook runs from the log, and compare their times with the budgets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..runtime.hooklog import TIME_IS_UP
from ..runtime.json_text import json_objects

HOOK_DAYS = 7
HOOK_BUDGETS_MS: Mapping[str, float] = {"SessionStart": 500.0, "UserPromptSubmit": 300.0}
OTHER_HOOKS_MS = 100.0
"""Time budgets by event; a test compares them with those that the hooks enforce."""


class HookRun(NamedTuple):
    """One run of a hook, from its line in the log."""

    event: str
    at: float
    """Unix time."""
    ms: float | None
    result: str | None
    is_degraded: bool
    """Whether it was cut off at its budget or went without something."""
    host: str = ""
    """The agent that ran it; '' in a line of an older version."""


@dataclass(frozen=True)
class HookTimes:
    """Counts and times of one event's hooks in the last days, and how many exceeded the budget or were cut off."""

    event: str
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    budget_ms: float
    over_budget: int
    degraded: int


def hook_times(runs: Iterable[HookRun], since: float) -> list[HookTimes]:
    """Return the percentiles (nearest rank) by event of the hooks since that unix time."""
    taken: dict[str, list[float]] = {}
    degraded: Counter[str] = Counter()
    for run in runs:
        if run.ms is not None and run.at >= since:
            taken.setdefault(run.event, []).append(float(run.ms))
            degraded[run.event] += run.is_degraded
    return [
        HookTimes(
            event=event,
            count=len(values),
            p50_ms=percentile(values, 0.50),
            p95_ms=percentile(values, 0.95),
            p99_ms=percentile(values, 0.99),
            budget_ms=budget_ms(event),
            over_budget=sum(value > budget_ms(event) for value in values),
            degraded=degraded[event],
        )
        for event, values in sorted(taken.items())
    ]


def budget_ms(event: str) -> float:
    """Return the time budget of an event's hooks, in milliseconds."""
    return HOOK_BUDGETS_MS.get(event, OTHER_HOOKS_MS)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile, which is always a measured value."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def read_hook_runs(log_file: Path, since: float) -> Iterator[HookRun]:
    """Return the hooks that ran since then, from the log and its rotated files, in the order they were written.

    Torn lines are left out.
    """
    rotated = sorted(log_file.parent.glob(log_file.name + ".*"))
    for path in (*rotated, log_file):
        with suppress(OSError):
            if path.stat().st_mtime >= since:
                with path.open("rb") as lines:
                    yield from _runs_in(lines, since)


def _runs_in(lines: Iterable[bytes], since: float) -> Iterator[HookRun]:
    for line in json_objects(raw for raw in lines if b'"hook"' in raw):
        with suppress(ValueError):  # Without a time.
            run = run_of(line)
            if run is not None and run.at >= since:
                yield run


def run_of(line: Mapping[str, Any]) -> HookRun | None:
    """Return the hook run of a line in the log; None if it is about something else. Raises ValueError for a line
    without a time."""
    if line.get("event") != "hook":
        return None
    ms, result = line.get("duration_ms"), line.get("result")
    is_number = isinstance(ms, int | float) and not isinstance(ms, bool)
    return HookRun(
        event=str(line.get("hook")),
        at=datetime.fromisoformat(str(line.get("time"))).timestamp(),
        ms=ms if is_number else None,
        result=None if result is None else str(result),
        is_degraded="degraded" in line or result == TIME_IS_UP,
        host=str(line.get("host", "")),
    )
