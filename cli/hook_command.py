"""`memory hook-command`: what an agent host runs for an event."""

from __future__ import annotations

import argparse
import shlex

from ..hooks.install import EVENTS, hook_argv
from .context import Context
from .output import add_json, print_json

EPILOG = """example:
  memory hook-command Stop --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory hook-command`."""
    parser.epilog = EPILOG
    parser.add_argument("event", choices=EVENTS, metavar="EVENT", help=", ".join(EVENTS))
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Print the argv, as JSON or as one shell line."""
    argv = hook_argv(args.event, context.settings)
    if args.json:
        print_json(argv)
    else:
        print(shlex.join(argv))
    return 0
