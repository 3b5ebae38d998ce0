"""Health: what needs the user first, then figures.

The page asks for the entries in use once it is shown, since every note is read to count them. Without scripts a link
leads to the page with all its parts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...hooks.wiring import is_wired
from ...runtime.background import what_starts_a_worker
from ...runtime.errors import MemoryVaultError
from ...services.active_counts import ActiveCounts, count_active
from ...services.health_report import health_report
from ...services.hook_log import HOOK_DAYS
from ...services.pending_counts import PendingCounts
from ...vault.pending import describe_other_places, describe_review
from ..context import ConsoleContext, Page

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
            **(_entries(context) if is_whole else {}),
        )

    def entries(request: Request) -> Response:
        return context.part("health_entries.html", **_entries(context))

    return Route("/health", look, methods=["GET"]), Route("/health/entries", entries, methods=["GET"])


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


PAGE = Page(name="health", title="Health", key="h", routes=_routes)
