"""Time series of the last weeks for charts: hook latency, growth of the vault, spending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from ..runtime.days import local_day
from .hook_log import HookRun, percentile

DAYS = 14
WEEKS = 12


@dataclass(frozen=True)
class DayOfHooks:
    """One event's hooks on one day, in milliseconds."""

    day: date
    count: int
    p50_ms: float | None
    p95_ms: float | None


def hooks_by_day(runs: Iterable[HookRun], event: str, today: date, days: int = DAYS) -> list[DayOfHooks]:
    """Return the hooks of each of the last days, oldest first; None for a day without."""
    taken: dict[date, list[float]] = {}
    for run in runs:
        if run.event == event and run.ms is not None:
            taken.setdefault(local_day(run.at), []).append(float(run.ms))
    found = []
    for day in last_days(today, days):
        values = taken.get(day, [])
        p50, p95 = (percentile(values, 0.5), percentile(values, 0.95)) if values else (None, None)
        found.append(DayOfHooks(day, len(values), p50, p95))
    return found


def growth_by_week(made: Mapping[str, int], today: date, weeks: int = WEEKS) -> list[tuple[date, int]]:
    """Return the number of entries at the end of each of the last weeks, by its Monday; the last value is today's.

    `made`: how many entries were made on each day, '' for unknown days, which are left out.
    """
    monday = today - timedelta(days=today.weekday())
    mondays = [monday - timedelta(weeks=back) for back in range(weeks - 1, -1, -1)]
    return [(first, _before(made, first + timedelta(weeks=1))) for first in mondays]


def _before(made: Mapping[str, int], end: date) -> int:
    limit = end.isoformat()
    return sum(count for day, count in made.items() if day and day < limit)


def last_days(today: date, days: int = DAYS) -> list[date]:
    """Return the last days including today, oldest first."""
    return [today - timedelta(days=back) for back in range(days - 1, -1, -1)]
