"""Enqueue jobs from commands: a row of the ledger, and a wake-up of the worker."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from ... import __version__
from ...runtime.errors import QueueUnavailable
from ...runtime.paths import ensure_state
from ...runtime.settings import Settings
from .kinds import Json
from .ledger import Ledger
from .spool import Spool
from .wakeup import wake_worker

COMMAND_PATIENCE_SECONDS = 2.0
"""How long a command waits for the queue. Its changes of files do not depend on it."""


def open_ledger(settings: Settings) -> Ledger:
    """Return the ledger of this vault, with the jobs that hooks have put into the spool; its commits wake the worker.

    Raises QueueUnavailable, SchemaTooNew.
    """
    state = settings.state
    ensure_state(state)
    ledger = Ledger(
        state.queue_db,
        busy_seconds=COMMAND_PATIENCE_SECONDS,
        wakeup=lambda: wake_worker(state.wake_socket, __version__),
    )
    with suppress(QueueUnavailable):
        Spool(state.spool, ledger).ingest()
    return ledger


def enqueue(settings: Settings, kind: str, args: Mapping[str, Json] | None = None, *, unique_key: str) -> int:
    """Enqueue one job that is due now; return its id. Raises QueueUnavailable."""
    with open_ledger(settings) as ledger:
        return ledger.enqueue(kind, args, unique_key=unique_key)


def request_indexing(settings: Settings) -> None:
    """Enqueue the indexing of changed files, if the queue is available; else the next walk of the vault finds them."""
    with suppress(QueueUnavailable):
        enqueue(settings, "index.reconcile", unique_key="index.reconcile")
