"""`memory pause`: stop hooks and jobs until `memory resume`."""

from __future__ import annotations

import argparse

from ..hooks.wiring import is_wired
from ..runtime.background import what_starts_a_worker
from ..runtime.errors import QueueUnavailable, SettingsError
from ..runtime.layout import StatePaths
from ..runtime.process_lock import lock_holder
from ..runtime.settings import Settings
from ..services.pausing import pause, pause_notice, paused_since, resume
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.wakeup import wake_worker
from .context import Context
from .output import counted, local_time, note, print_json

EPILOGS = {
    "pause": """example:
  memory pause

Until `memory resume`, hooks record nothing and add nothing to sessions, and the worker starts no job. What runs, a
reflection by hand too, ends within seconds; the worker does its jobs anew later. Commands, the console and
the tools of `memory service mcp` still work.

A session that began before, or goes on after `memory resume`, is then read whole. To leave a session out, start the
agent with MEMORY_ENABLED=false; to leave out a passage, put it in `<private>…</private>`.

One kind of job alone: `memory jobs pause KIND`.
""",
    "resume": "example:\n  memory resume\n",
}

UNWIRED = "no session is recorded, as no agent is wired (`memory init`)"


def run(args: argparse.Namespace, context: Context) -> int:
    """Pause or resume; a second time changes nothing. It works with a broken settings file and without the vault.

    `resume` returns 1 while a setting still stops everything. Raises SettingsError if the vault is not known.
    """
    context, readable = context.despite_faults()
    for fault in readable.faults:
        note(f"memory: {fault}")
    if "vault.path" in readable.unread:
        raise SettingsError("vault.path could not be read: mend the file, then run this again")
    act = _pause if args.action == "pause" else _resume
    return act(args, context.settings, context.kept_state)


def _pause(args: argparse.Namespace, settings: Settings, state: StatePaths) -> int:
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


def _resume(args: argparse.Namespace, settings: Settings, state: StatePaths) -> int:
    changed = resume(state)
    still = pause_notice(settings)
    wake_worker(state.wake_socket)
    if args.json:
        print_json({"paused": still is not None, "changed": changed})
    elif not still:
        recorded = "sessions are recorded, and jobs start" if is_wired(settings) else f"jobs start; {UNWIRED}"
        print(f"resumed: {recorded}" if changed else "nothing was paused")
        if changed and lock_holder(state.worker_lock) is None:
            print(f"no worker runs now: {what_starts_a_worker(settings, is_wired)}")
    if still:
        ended = "the pause has ended, but " if changed else ""
        note(f"memory: {ended}{still}")
    return 1 if still else 0


def _running(settings: Settings) -> int:
    """Number of running jobs; 0 if the queue cannot be read."""
    try:
        with open_ledger(settings) as ledger:
            return ledger.backlog().running
    except QueueUnavailable:
        return 0
