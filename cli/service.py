"""`memory service install`, `status` and `remove`: the worker as a login service."""

from __future__ import annotations

import argparse

from ..runtime.background import allow_starts
from ..runtime.errors import MemoryVaultError, UsageError
from ..runtime.process_lock import lock_holder
from ..tasks.queue.units import SystemdUser
from .context import Context
from .output import note, print_json
from .processes import ensure_worker, stop_background

EPILOGS = {
    "install": "example:\n  memory service install     a systemd user unit\n",
    "status": "example:\n  memory service status      exit code 1 when it is not installed, or does not run\n",
    "remove": "example:\n  memory service remove\n",
}


def run(args: argparse.Namespace, context: Context) -> int:
    """Install, show or remove the unit; a second time changes nothing. `status` returns 1 if it does not run."""
    manager = SystemdUser(context.env)
    changed = False
    if args.action == "install":
        if not context.settings.memory.enabled:
            raise UsageError("memory.enabled is false: the worker would do nothing")
        # A worker that a session started holds the lock that the unit's worker needs.
        stopped = not manager.state().running and stop_background(context.state, "worker")
        if stopped:
            note("memory: stopped the worker that a session had started; the service takes over")
        try:
            changed = manager.install()
            allow_starts(context.state)
        except MemoryVaultError:
            if stopped and ensure_worker(context.settings):
                note("memory: the worker runs again, without a service")
            raise
    elif args.action == "remove":
        changed = manager.remove()
    state = manager.state()
    worker = lock_holder(context.state.worker_lock)
    if args.json:
        print_json(
            {
                "definition": str(state.definition),
                "installed": state.installed,
                "running": state.running,
                "changed": changed,
                "worker": worker,
            }
        )
    elif args.action == "remove":
        print(f"removed {state.definition}" if changed else "there was no login service of MemoryVault")
    elif not state.installed:
        print("not installed; the first hook of a session starts the worker (`memory service install` changes that)")
    else:
        print(f"{'runs' if state.running else 'does not run'}: {state.definition}")
    return 1 if args.action == "status" and not (state.installed and state.running) else 0
