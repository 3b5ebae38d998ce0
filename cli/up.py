"""`memory up`: what the Procfile names, run together by honcho."""

from __future__ import annotations

import argparse
import sys

from honcho.manager import Manager

from ..vault.settings import child_environment
from .context import Context

EPILOG = """example:
  memory up             worker and recall service in one terminal; Ctrl-C stops both
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory up`."""
    parser.epilog = EPILOG


def run(args: argparse.Namespace, context: Context) -> int:
    """Run both until one ends or a signal comes; the other is stopped with it."""
    del args
    _ = context.state
    manager = Manager()
    environment = child_environment(context.settings)
    for name, command in (("worker", "worker"), ("recall", "serve")):
        manager.add_process(
            name, f"exec '{sys.executable}' -m memoryvault {command}", env=environment, cwd="/"
        )
    manager.loop()
    return int(manager.returncode or 0)
