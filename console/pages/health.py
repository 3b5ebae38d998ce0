"""Health: what needs the user first, then figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...hooks.wiring import is_wired
from ...runtime.background import what_starts_a_worker
from ...services.health_report import health_report
from ...services.hook_log import HOOK_DAYS
from ...services.pending_counts import COMMANDS, PendingCounts
from ...vault.pending import describe_other_places, describe_review
from ..context import ConsoleContext, Page


def _routes(context: ConsoleContext) -> Sequence[Route]:
    def look(request: Request) -> Response:
        # Of a large vault, counting the entries in use would take longer than all of the rest.
        report = health_report(context.settings, time.time(), is_wired, count_entries=False)
        return context.page(
            request,
            "health.html",
            page="health",
            pending=report.waiting,
            report=report,
            todo=_to_do(report.waiting) if report.waiting else [],
            what_starts_a_worker=what_starts_a_worker(context.settings, is_wired),
            days=HOOK_DAYS,
        )

    return (Route("/health", look, methods=["GET"]),)


def _to_do(waiting: PendingCounts) -> list[tuple[str, str]]:
    """What waits for the user, each with the page where it is decided on, '' where only a command does."""
    counts = asdict(waiting)
    review = " and ".join(describe_review(counts))
    others = [
        (f"{phrase} ({COMMANDS[place]})", "") if place == "patterns" else (phrase, place)
        for place, phrase in describe_other_places(counts).items()
    ]
    return [*([(review, "review")] if review else []), *others]


PAGE = Page(name="health", title="Health", key="h", routes=_routes)
