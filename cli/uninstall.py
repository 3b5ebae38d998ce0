"""`memory uninstall`: take the hooks out and stop what runs; the vault stays."""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import suppress

from ..hooks.install import uninstall
from ..index.client import RecallClient
from ..tasks.lock import running_worker
from ..vault.errors import MemoryVaultError
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
    """Hooks first, so that nothing is started again; then the worker drains and the recall service ends."""
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
            "your vault stays where it is"
            + (f": {context.settings.vault_path}" if context.settings.vault_path else "")
        )
    return 0


def _stop_processes(context: Context) -> list[str]:
    """Names of the processes that ran and were stopped."""
    stopped: list[str] = []
    if context.settings.vault_path is None:
        return stopped
    state = context.settings.state
    with suppress(MemoryVaultError), RecallClient(state.recall_socket) as client:
        client.stop()
        stopped.append("recall")
    pid = running_worker(state.worker_lock)
    if pid is not None and pid != os.getpid():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
            stopped.append("worker")
            until = time.monotonic() + STOP_SECONDS
            while time.monotonic() < until and running_worker(state.worker_lock) == pid:
                time.sleep(0.05)
    return stopped
