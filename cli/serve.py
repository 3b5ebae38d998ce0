"""`memory serve`: the recall service with the warm model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from ..index.service import Outcome, ServiceConfig, serve
from ..vault import hooklog
from .context import Context
from .output import note

EPILOG = """example:
  memory serve          it is started on demand, so this is for watching it
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory serve`."""
    parser.epilog = EPILOG


def run(args: argparse.Namespace, context: Context) -> int:
    """Serve until idle for the configured time, told to stop, or another service already runs."""
    del args
    state = context.state_of_vault_or_index
    outcome = serve(ServiceConfig.from_settings(context.settings), log=_log(state.log_file))
    if outcome is Outcome.ALREADY_RUNNING:
        note("memory: a recall service already runs for this vault")
    return 0


def _log(log_file: str) -> Callable[[str, Mapping[str, Any]], None]:
    def write(event: str, fields: Mapping[str, Any]) -> None:
        hooklog.append(log_file, "info", f"recall.{event}", **fields)

    return write
