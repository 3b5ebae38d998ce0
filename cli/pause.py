"""`memory pause`: stop hooks and jobs until `memory resume`."""

from __future__ import annotations

import argparse

from ..runtime.errors import QueueUnavailable, SettingsError
from ..runtime.layout import StatePaths
from ..runtime.settings import Settings
from ..services.pausing import pause, paused_since
from ..tasks.queue.enqueue import open_ledger
from .context import Context
from .output import add_json, counted, local_time, note, print_json

EPILOG = """example:
  memory pause

Until `memory resume`, hooks record nothing and add nothing to sessions, and the worker starts no job. What runs, a
reflection by hand too, ends within seconds; the worker does its jobs anew later. Commands, the console and
the tools of `memory service mcp` still work.

A session that began before, or goes on after `memory resume`, is then read whole. To leave a session out, start the
agent with MEMORY_ENABLED=false; to leave out a passage, put it in `<private>…</private>`.

One kind of job alone: `memory jobs pause KIND`. What runs at set times: `memory jobs schedule pause NAME`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory pause`."""
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Pause; a second time changes nothing. It works with a broken settings file and without the vault."""
    settings, state = switched_place(context)
    changed = pause(state)
    running = _running(settings)
    if args.json:
        print_json({"paused": True, "changed": changed, "running": running})
        return 0
    if changed:
        print("paused: hooks record nothing and add nothing to sessions, and no job starts, until `memory resume`")
    else:
        print(f"it was paused already, since {local_time(paused_since(state))}; `memory resume` ends it")
    if running:
        print(f"{counted(running, 'job that runs goes', 'jobs that run go')} on to the end (see `memory jobs list`)")
    return 0


def switched_place(context: Context) -> tuple[Settings, StatePaths]:
    """The readable settings and the state folder to pause. Raises SettingsError if the vault is not known."""
    context, readable = context.despite_faults()
    for fault in readable.faults:
        note(f"memory: {fault}")
    if "vault.path" in readable.unread:
        raise SettingsError("vault.path could not be read: mend the file, then run this again")
    return context.settings, context.kept_state


def _running(settings: Settings) -> int:
    """Number of running jobs; 0 if the queue cannot be read."""
    try:
        with open_ledger(settings) as ledger:
            return ledger.backlog().running
    except QueueUnavailable:
        return 0
