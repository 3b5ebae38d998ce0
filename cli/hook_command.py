"""`memory config hook-command`: print the command that an agent host runs for an event."""

from __future__ import annotations

import argparse
import shlex

from ..hooks.install import ACTION_EVENTS, EVENTS, launcher_in, write_launcher
from ..hooks.wiring import CLAUDE, HOSTS, hook_argv
from ..runtime.errors import SettingsError, UsageError
from ..runtime.layout import state_root
from .context import Context
from .output import add_json, note, print_result

EPILOG = """example:
  memory config hook-command Stop --json
  memory config hook-command PreInvocation --host antigravity
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory config hook-command`."""
    parser.add_argument(
        "event", metavar="EVENT", help=f"as the host calls it; Claude Code: {', '.join((*EVENTS, *ACTION_EVENTS))}"
    )
    parser.add_argument("--host", default=CLAUDE, choices=HOSTS, help="the agent that runs it (default claude)")
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Write the launcher, and print the argv that starts it, as JSON or as one shell line."""
    _, readable = context.despite_faults()  # The command does not depend on the settings.
    for fault in readable.faults:
        note(f"memory: {fault}")
    launcher = launcher_in(state_root(context.env))
    try:
        argv = hook_argv(args.event, launcher, args.host)
    except SettingsError as error:
        raise UsageError(str(error)) from error
    write_launcher(launcher)
    return print_result(args, argv, shlex.join(argv))
