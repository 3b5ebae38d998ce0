"""Health: what needs the user first, then figures, then how latency, growth and spending went.

The entries in use and the charts are parts that the page asks for once it is shown: they are made of every note, what
needs the user of few files. Without scripts links lead to the page with all its parts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...hooks.wiring import is_wired
from ...index.catalog_reader import CatalogReader
from ...index.on_demand import what_starts_a_worker
from ...runtime.days import SECONDS_PER_DAY, local_day
from ...runtime.errors import IndexUnavailable, MemoryVaultError
from ...services.active_counts import ActiveCounts, count_active
from ...services.health_report import health_report
from ...services.hook_log import HOOK_DAYS, HookRun, budget_ms, read_hook_runs
from ...services.pending_counts import PendingCounts
from ...services.spending import spent_by_day
from ...services.trends import DAYS, WEEKS, growth_by_week, hooks_by_day, last_days
from ...vault.pending import describe_other_places, describe_review
from ..charts import Chart, Series, bar_chart, line_chart
from ..context import ConsoleContext
from ..page import Page

PROMPT = "UserPromptSubmit"
WHOLE = "whole"
"""`?view=` of the page with all its parts."""


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        now = time.time()
        report = health_report(context.settings, now, is_wired, count_entries=False)
        is_whole = request.query_params.get("view") == WHOLE
        return context.page(
            request,
            "health.html",
            page="health",
            pending=report.waiting,
            report=report,
            todo=_to_do(report.waiting) if report.waiting else [],
            what_starts_a_worker=what_starts_a_worker(context.settings, is_wired),
            days=HOOK_DAYS,
            now=now,
            whole=WHOLE,
            is_whole=is_whole,
            **(_entries(context) | _charts(context, now) if is_whole else {}),
        )

    def entries(request: Request) -> Response:
        return context.part("health_entries.html", **_entries(context))

    def charts(request: Request) -> Response:
        return context.part("health_charts.html", **_charts(context, time.time()))

    routes = {"/health": look, "/health/entries": entries, "/health/charts": charts}
    return tuple(Route(address, answer, methods=["GET"]) for address, answer in routes.items())


def _to_do(waiting: PendingCounts) -> list[tuple[str, str]]:
    """What waits for the user, each with the page where it is decided on."""
    counts = asdict(waiting)
    review = " and ".join(describe_review(counts))
    places = {"inbox": "inbox", "ideas": "ideas", "patterns": "watchlist"}
    others = [(phrase, places[place]) for place, phrase in describe_other_places(counts).items()]
    return [*([(review, "review")] if review else []), *others]


def _entries(context: ConsoleContext) -> dict[str, Any]:
    """The values of `health_entries.html`."""
    counts: ActiveCounts | None = None
    with suppress(MemoryVaultError):  # The page itself has said why.
        counts = count_active(context.settings, context.store())
    return {"entries": counts}


def _charts(context: ConsoleContext, now: float) -> dict[str, Any]:
    """The values of `health_charts.html`."""
    runs = read_hook_runs(Path(context.settings.state.log_file), now - DAYS * SECONDS_PER_DAY)
    today = local_day(now)
    return {"charts": [_latency(runs, today), _growth(_made(context), today), _spending(context, today)]}


def _latency(runs: Iterable[HookRun], today: date) -> Chart:
    days = hooks_by_day(runs, PROMPT, today)
    ran = [day for day in days if day.p95_ms is not None]
    worst = max((day.p95_ms or 0.0 for day in ran), default=0.0)
    budget = budget_ms(PROMPT)
    return line_chart(
        "latency",
        "Latency of recall",
        f"Milliseconds that the hook of a prompt took on each of the last {DAYS} days."
        + (f" The highest 95th percentile is {worst:.0f} ms, the budget {budget:.0f} ms." if ran else ""),
        [_day(one.day) for one in days],
        [Series("p95", [day.p95_ms for day in days]), Series("median", [day.p50_ms for day in days], is_soft=True)],
        unit="ms",
        limit=budget,
        limit_name=f"budget, {budget:.0f} ms",
    )


def _growth(made: Mapping[str, int], today: date) -> Chart:
    weeks = growth_by_week(made, today)
    undated = made.get("", 0)
    first, last = weeks[0][1], weeks[-1][1]
    return line_chart(
        "growth",
        "Growth of the vault",
        f"Entries in use, by week: {last:,} now, {last - first:,} more than {WEEKS - 1} weeks before."
        + (f" {undated:,} without a date {'is' if undated == 1 else 'are'} left out." if undated else ""),
        [_day(monday) for monday, _ in weeks],
        [Series("entries", [count if last else None for _, count in weeks])],
        unit="",
        is_area=True,
    )


def _spending(context: ConsoleContext, today: date) -> Chart:
    days = last_days(today)
    spent: Mapping[str, Mapping[str, int]] = {}
    with suppress(MemoryVaultError):
        spent = spent_by_day(context.settings.state.state_db, "tokens", days[0].isoformat())
    purposes = sorted({purpose for of in spent.values() for purpose in of})
    sums = [sum(spent.get(day.isoformat(), {}).values()) for day in days]
    return bar_chart(
        "spending",
        "What MemoryVault spent",
        f"Tokens by day, of models it asked and of notes that research wrote: {sum(sums):,} in {DAYS} days.",
        [_day(day) for day in days],
        [
            Series("all", sums),
            *(
                Series(purpose, [spent.get(day.isoformat(), {}).get(purpose, 0) for day in days])
                for purpose in purposes
            ),
        ],
        unit="tokens",
    )


def _made(context: ConsoleContext) -> Mapping[str, int]:
    """Entries made by day."""
    index = Path(context.settings.state.index_db)
    with suppress(IndexUnavailable), closing(CatalogReader(index)) as reader:
        return reader.count_by_day()
    return {}


def _day(day: date) -> str:
    return f"{day.day} {day:%b}"


PAGE = Page(name="health", title="Health", key="h", routes=_routes)
