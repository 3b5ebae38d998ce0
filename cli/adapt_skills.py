"""`memory skills adapt`: judge found skills, and put those worth adopting on the watchlist."""

from __future__ import annotations

import argparse
from typing import Any

from ..pipelines.adaptation import Confidence
from ..services.discovery.adapting import (
    PATTERNS_PER_RUN,
    TRUSTED_NOTE,
    Adaptation,
    AdaptationOutcome,
    is_confirmed,
    model_for,
)
from ..services.discovery.fetch_child import fetch_in_child
from ..tasks.queue.enqueue import request_indexing
from .arguments import at_least_one
from .context import Context
from .output import add_json, counted, note, print_json

EPILOG = """example:
  memory skills adapt --limit 5 --skip-network
"""

NOTHING_WAITS = "nothing waits to be judged: `memory skills discover` looks for more"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory skills adapt`."""
    parser.add_argument("--limit", type=at_least_one, metavar="N", help=f"judge at most N (default {PATTERNS_PER_RUN})")
    parser.add_argument("--skip-network", action="store_true", help="look nothing up on GitHub, ask no model")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Judge the skills that wait."""
    limit = args.limit or PATTERNS_PER_RUN
    network = not args.skip_network and is_confirmed(context.settings)
    fetch = fetch_in_child(context.settings) if network else None
    completer = model_for(context.settings) if network else None
    adaptation = Adaptation(context.settings, context.store, fetch=fetch, completer=completer)
    seeded = adaptation.seed()
    if seeded:
        note(f"memory: wrote {TRUSTED_NOTE}: the owners that you trust more")
    waiting = adaptation.ranked()
    skipped = adaptation.found.judged()
    results = []
    written = False
    try:
        for pattern in waiting[:limit]:
            results.append(adaptation.evaluate(pattern))
            written |= results[-1].path is not None
    finally:
        if written:
            request_indexing(context.settings)
    _print(args, results, skipped, len(waiting) - len(results), seeded)
    return 0


def _print(args: argparse.Namespace, results: list[AdaptationOutcome], skipped: int, left: int, seeded: bool) -> None:
    written = [result for result in results if result.path is not None]
    levels = [result.judgement.confidence for result in results if result.judgement is not None]
    if args.json:
        print_json(
            {
                "evaluated_count": len(results),
                "written_count": len(written),
                "skipped_count": skipped,
                "high_count": levels.count(Confidence.HIGH),
                "medium_count": levels.count(Confidence.MEDIUM),
                "low_count": levels.count(Confidence.LOW),
                "waiting_count": left,
                "limit_reached": left > 0,
                "trusted_sources_seeded": seeded,
                "results": [_as_json(result) for result in results],
            }
        )
        return
    for result in results:
        level = result.judgement.confidence.name if result.judgement else "-"
        print(
            f"{level:<7} {result.pattern.source}/{result.slug}"
            + (f" -> {result.path}" if result.path else f": {result.detail}")
        )
    if not results:
        print(NOTHING_WAITS)
    if left:
        print(f"{counted(left, 'more waits', 'more wait')} for the next run")
    if written:
        print("\n`memory skills watchlist` decides on them")


def _as_json(result: AdaptationOutcome) -> dict[str, Any]:
    judged = result.judgement
    return {
        "source": result.pattern.source,
        "pattern_slug": result.slug,
        "url": result.pattern.url,
        "confidence": judged.confidence.name if judged else None,
        "score": judged.score if judged else None,
        "rules_fired": [rule.id for rule in judged.rules] if judged else [],
        "from_trusted_org": judged.trusted if judged else False,
        "trust": list(judged.trust) if judged else [],
        "path": result.path,
        **({"detail": result.detail} if result.detail else {}),
    }
