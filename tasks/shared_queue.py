"""The queue that several machines share (`queue.url`), as the rest of the package meets it.

Only here is it decided whether there is one. psycopg is an extra and is imported when the queue is opened, never
before: without it, and without a database, a machine does its own work as ever.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..vault.errors import QueueUnavailable
from ..vault.settings import Settings

if TYPE_CHECKING:
    from .postgres.ledger import PostgresLedger

_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
MACHINE_CHARACTERS = 63


def is_shared(settings: Settings) -> bool:
    """Whether this machine has to do with others at all."""
    return bool(settings.queue.url)


def machine_name(settings: Settings) -> str:
    """This machine in the shared queue: `queue.machine`, else its host name in the characters of such a name."""
    name = settings.queue.machine or _UNFIT.sub("-", platform.node()).strip("-.")
    return name[:MACHINE_CHARACTERS] or "localhost"


def open_shared(settings: Settings, *, bell: Callable[[], None] | None = None) -> PostgresLedger:
    """The shared ledger, connected. Raises QueueUnavailable in one line without the address's password, SchemaTooNew.

    To be asked only if `is_shared`. It waits for the network: never call it where a user or a hook waits.
    """
    try:
        from .postgres.ledger import PostgresLedger
    except ImportError:
        raise QueueUnavailable(
            "queue.url is set, but psycopg is not installed: pip install 'memoryvault[shared]'"
        ) from None
    return PostgresLedger(settings.queue.url, bell=bell, machine=machine_name(settings), work=settings.queue.work)
