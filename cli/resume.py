"""`memory resume`: end a `memory pause`."""

from __future__ import annotations

import argparse

from ..hooks.wiring import is_wired
from ..runtime.process_lock import lock_holder
from ..services.pausing import pause_notice, resume
from ..tasks.queue.wakeup import wake_worker
from .context import Context
from .doctor_checks import hooks_start_worker
from .output import add_json, note, print_json
from .pause import switched_place

EPILOG = """example:
  memory resume
"""

UNWIRED = "no session is recorded, as no agent is wired (`memory init`)"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory resume`."""
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Resume; without a pause nothing changes. Return 1 while a setting still stops everything."""
    settings, state = switched_place(context)
    changed = resume(state)
    still = pause_notice(settings)
    wake_worker(state.wake_socket)
    if args.json:
        print_json({"paused": still is not None, "changed": changed})
    elif not still:
        recorded = "sessions are recorded, and jobs start" if is_wired(settings) else f"jobs start; {UNWIRED}"
        print(f"resumed: {recorded}" if changed else "nothing was paused")
        if changed and lock_holder(state.worker_lock) is None:
            by_hook = "the next session starts it, or " if hooks_start_worker(settings) else ""
            print(f"no worker runs now: {by_hook}`memory service up`")
    if still:
        ended = "the pause has ended, but " if changed else ""
        note(f"memory: {ended}{still}")
    return 1 if still else 0
