"""`memory uninstall`: take the hooks out and stop what runs; the vault stays."""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import suppress

from ..hooks.install import uninstall
from ..vault.lock import lock_holder
from .context import Context
from .output import add_json, print_json

EPILOG = """example:
  memory uninstall
"""

STOP_SECONDS = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of `memory uninstall`."""
    parser.epilog = EPILOG
    add_json(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    """Hooks first, so that nothing is started again; then the worker drains, then the recall service ends."""
    done = uninstall(context.settings)
    stopped = _stop_processes(context)
    if args.json:
        print_json(
            {
                "hooks": str(done.settings_file),
                "changed": done.changed,
                "restored": done.restored,
                "stopped": stopped,
            }
        )
    else:
        if not done.changed:
            print(f"there were no hooks of ours in {done.settings_file}")
        else:
            how = "has the bytes it had before" if done.restored else "has no hooks of ours any more"
            print(f"{done.settings_file} {how}")
        print(
            "your vault stays where it is" + (f": {context.settings.vault_path}" if context.settings.vault_path else "")
        )
    return 0


def _stop_processes(context: Context) -> list[str]:
    """Names of the processes that ran and were stopped."""
    stopped: list[str] = []
    if context.settings.vault_path is None:
        return stopped
    state = context.settings.state
    # The worker first: one that has something to embed would start the service again.
    for name, lock in (("worker", state.worker_lock), ("recall", state.recall_lock)):
        pid = lock_holder(lock)
        if pid is None or pid == os.getpid():
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
            stopped.append(name)
            until = time.monotonic() + STOP_SECONDS
            while time.monotonic() < until and lock_holder(lock) == pid:
                time.sleep(0.05)
    return stopped
