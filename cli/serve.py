"""`memory service serve`: run the recall service, which keeps the model loaded."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from typing import Any

from ..index.service import IDLE_SECONDS, Outcome, serve
from ..runtime import hooklog
from .context import Context
from .output import note

EPILOG = """example:
  memory service serve
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory service serve`."""
    parser.add_argument("--stay", action="store_true", help="keep running without requests, as under a process manager")


def run(args: argparse.Namespace, context: Context) -> int:
    """Serve until idle for the configured time (not with --stay) or stopped; end at once if another service runs."""
    state = context.state_of_vault_or_index
    idle_seconds = math.inf if args.stay else IDLE_SECONDS

    def log(event: str, fields: Mapping[str, Any]) -> None:
        hooklog.append(state.log_file, "info", f"recall.{event}", **fields)

    outcome = serve(context.settings, state, idle_seconds=idle_seconds, log=log)
    if outcome is Outcome.ALREADY_RUNNING:
        note("memory: a recall service already runs for this vault")
    return 0
