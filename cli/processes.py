"""Stopping what runs in the background for a vault."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Literal

from ..index.client import start_service
from ..tasks.queue.units import worker_command
from ..vault.layout import StatePaths
from ..vault.lock import lock_holder
from ..vault.settings import Settings

STOP_SECONDS = 30.0
START_SECONDS = 10.0

Background = Literal["worker", "recall"]


def ensure_worker(settings: Settings, wait_seconds: float = START_SECONDS) -> bool:
    """Start the worker detached unless one runs; whether one runs within this time."""
    lock = settings.state.worker_lock
    if lock_holder(lock) is None:
        start_service(settings, worker_command())
    until = time.monotonic() + wait_seconds
    while lock_holder(lock) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # Another user's by now.
        return False
    return not _is_ended(pid)


def _is_ended(pid: int) -> bool:
    """Whether it only waits to be noticed by its parent (Linux; elsewhere False)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return False


def stop_background(state: StatePaths, *which: Background) -> list[str]:
    """SIGTERM to those that run, and wait until they have drained; the names of those that were stopped.

    Name the worker before the recall service: a worker with something to embed would start the service again.
    """
    locks = {"worker": state.worker_lock, "recall": state.recall_lock}
    stopped: list[str] = []
    for name in which:
        pid = lock_holder(locks[name])
        if pid is None or pid == os.getpid():
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
            stopped.append(name)
            until = time.monotonic() + STOP_SECONDS
            # Until the process itself is gone: its lock is free some moments before.
            while time.monotonic() < until and (lock_holder(locks[name]) == pid or _is_there(pid)):
                time.sleep(0.05)
    return stopped
