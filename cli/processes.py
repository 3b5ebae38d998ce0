"""Start the worker, and stop background processes of a vault."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from ..runtime.background import start_in_background
from ..runtime.layout import StatePaths
from ..runtime.process_lock import lock_holder
from ..runtime.settings import Settings
from ..tasks.queue.units import ServiceManagerUnavailable, SystemdUser, worker_command
from .output import note

STOP_SECONDS = 30.0
SILENT_SECONDS = 1.0
START_SECONDS = 20.0

Background = Literal["worker", "recall"]


def ensure_worker(settings: Settings) -> bool:
    """Start a detached worker unless one runs; return whether one runs within START_SECONDS. Raises CannotStart."""
    if lock_holder(settings.state.worker_lock) is None:
        start_in_background(settings, "worker", worker_command())
    return _worker_comes(settings, START_SECONDS)


def _worker_comes(settings: Settings, wait_seconds: float) -> bool:
    until = time.monotonic() + wait_seconds
    while lock_holder(settings.state.worker_lock) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def stop_replaced(before: StatePaths, settings: Settings, env: Mapping[str, str]) -> list[str]:
    """Stop processes in the state folder `before`, if it is not the chosen vault's; return their names.

    Nothing else would stop them: hooks, commands and `memory uninstall` know the chosen vault alone. The login
    service's worker is started again for that vault.
    """
    if before.root == settings.state.root:
        return []
    stopped = stop_background(before, "worker", "recall")
    if "worker" in stopped:
        manager = SystemdUser(env)
        if manager.state().installed:
            with suppress(ServiceManagerUnavailable):  # The service restarts its worker itself some seconds later.
                manager.install()
                _worker_comes(settings, START_SECONDS)
    return stopped


def _is_there(pid: int) -> bool:
    """Whether the process runs. On Linux a zombie does not."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except (ProcessLookupError, PermissionError):  # Or the id belongs to another user's process now.
        return False
    except OSError:  # There is no /proc.
        return True


def stop_background(state: StatePaths, *which: Background) -> list[str]:
    """Send SIGTERM to the named processes that run, and wait until they end. Return the names of those that ended.

    Name the worker before the recall service: a worker with passages to embed would start the service again.
    """
    locks = {"worker": state.worker_lock, "recall": state.recall_lock}
    stopped: list[str] = []
    for name in which:
        pid = lock_holder(locks[name])
        if pid is None or pid == os.getpid():
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
            began = time.monotonic()
            told = False
            # Until the process is gone: it frees its lock a moment before.
            while (took := time.monotonic() - began) < STOP_SECONDS and (
                lock_holder(locks[name]) == pid or _is_there(pid)
            ):
                if not told and took > SILENT_SECONDS:
                    told = True
                    note(f"memory: the {name} finishes what it does; this takes some seconds")
                time.sleep(0.05)
            if lock_holder(locks[name]) == pid or _is_there(pid):
                note(f"memory: the {name} (pid {pid}) was told to end, but still runs")
            else:
                stopped.append(name)
    return stopped
