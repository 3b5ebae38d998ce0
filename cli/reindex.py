"""`memory vault reindex`: update the index from the files, or rebuild it."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from ..services.indexing import drain_now, reconcile_now
from .context import Context
from .output import add_json, note, print_result
from .progress import draw_share

EPILOG = """example:
  memory vault reindex --rebuild
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault reindex`."""
    parser.add_argument("--rebuild", action="store_true", help="throw the index away first")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Reconcile and embed in this process; after an interruption the next run continues."""
    _ = context.state
    report = reconcile_now(context.settings, full=args.rebuild)
    drained = drain_now(context.settings, on_progress=partial(draw_share, "embedding") if sys.stderr.isatty() else None)
    counts = {
        **{name: getattr(report, name) for name in ("added", "changed", "moved", "removed", "unchanged")},
        "embedded": drained.processed,
        "without_vector": drained.remaining,
    }
    told = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counts.items())
    print_result(args, {**counts, "failed": list(report.failed)}, told)
    if drained.reason:
        note(f"memory: {drained.reason}")
    for path, why in drained.failed:
        note(f"memory: could not be embedded: {path}: {why}")
    for path in report.failed:
        note(f"memory: could not be read: {path}")
    return 1 if report.failed else 0
