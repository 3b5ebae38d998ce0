"""`memory vault demo`: run the whole loop in a temporary folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..demo.loop import play
from ..runtime.errors import UsageError
from .context import Context
from .path_arguments import named_path

EPILOG = """example:
  memory vault demo                                              with a session that comes along
  memory vault demo ~/.claude/projects/-home-dev-shop/ID.jsonl   with one of yours
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory vault demo`."""
    parser.add_argument("session", nargs="?", type=Path, metavar="TRANSCRIPT", help="a transcript of Claude Code")


def run(args: argparse.Namespace, context: Context) -> int:
    """Record, mine and recall in a folder that is removed afterwards; the user's own data is not touched."""
    chosen = named_path(args.session) if args.session else None
    if chosen is not None and not chosen.is_file():
        raise UsageError(f"there is no transcript {chosen}")
    return play(chosen)
