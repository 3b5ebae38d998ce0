"""Stopping what runs in the background for a vault."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import Literal

from ..vault.layout import StatePaths
from ..vault.lock import lock_holder

STOP_SECONDS = 30.0

Background = Literal["worker", "recall"]


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
            while time.monotonic() < until and lock_holder(locks[name]) == pid:
                time.sleep(0.05)
    return stopped
