"""The queue that several machines share (`queue.url`), as the rest of the package meets it.

Only here is it decided whether there is one. psycopg is an extra and is imported when the queue is opened, never
before: without it, and without a database, a machine does its own work as ever.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..runtime.errors import QueueUnavailable
from ..runtime.settings import Settings
from .shared_queue_link import LinkNote

if TYPE_CHECKING:
    from .postgres.ledger import PostgresLedger
    from .postgres.loop import MakeHandlers, Upkeep
    from .queue.times import worker_times
from .queue.worker import Loop

NO_CLIENT = (
    "queue.url is set, but psycopg is not installed: install the wheel again with [shared] (docs/how-to/install.md)"
)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
MACHINE_CHARACTERS = 63


def is_shared(settings: Settings) -> bool:
    """Whether this machine has to do with others at all."""
    return bool(settings.queue.url)


def machine_name(settings: Settings) -> str:
    """This machine in the shared queue: `queue.machine`, else its host name in the characters of such a name."""
    name = settings.queue.machine or _UNFIT.sub("-", platform.node()).strip("-.")
    return name[:MACHINE_CHARACTERS] or "localhost"


def open_shared(settings: Settings, *, bell: Callable[[], None] | None = None, connect: bool = True) -> PostgresLedger:
    """The shared ledger; without `connect` it reaches for the database when it is first used.

    To be asked only if `is_shared`. It waits for the network: never use it where a user or a hook waits. Raises
    QueueUnavailable, in one line without the address's password.
    """
    try:
        from .postgres.ledger import PostgresLedger
    except ImportError:
        raise QueueUnavailable(NO_CLIENT) from None
    return PostgresLedger(
        settings.queue.url, bell=bell, machine=machine_name(settings), work=settings.queue.work, connect=connect
    )


def build_loop(settings: Settings, make_handlers: MakeHandlers, upkeep: Upkeep) -> Loop:
    """The worker's second loop. Raises QueueUnavailable if psycopg is not installed."""
    try:
        from .postgres.loop import LoopContext, SharedLoop
    except ImportError:
        raise QueueUnavailable(NO_CLIENT) from None
    times = worker_times(settings.environment)
    context = LoopContext(
        open_ledger=lambda bell: open_shared(settings, bell=bell, connect=False),
        machine=machine_name(settings),
        stopped=lambda: os.path.exists(settings.state.stop_file),
        tell=LinkNote(settings.state).tell,
        workers=settings.queue.workers,
        lease_seconds=times.lease,
        drain_seconds=times.drain,
    )
    return SharedLoop(context, make_handlers, upkeep)
