"""huey's PostgreSQL storage over the shared ledger: doorbells in its table, LISTEN for the wake-up."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading

import psycopg
from huey.storage import PostgresStorage

from ...runtime.errors import QueueUnavailable
from ..queue.app import Claiming, ClaimingStorage
from .ledger import PostgresLedger
from .statements import TABLE_PREFIX

log = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 30.0
LISTENER = "shared-listener"
"""Name of the thread."""
LISTEN_SECONDS = 60.0
"""So long without a word a listener asks whether the server still hears it."""


class SharedStorage(ClaimingStorage, PostgresStorage):  # type: ignore[misc]
    """Of all threads of a worker one listens, on a connection of its own; it rings the bell for the others.

    huey itself would hold a listening connection for each thread, and a server has few of them.
    """

    def __init__(self, name: str, *, ledger: PostgresLedger, claiming: Claiming, machine: str) -> None:
        super().__init__(
            ledger,
            claiming,
            name,
            connection=lambda: ledger.address.connect(f"{machine} listens"),
            table_prefix=TABLE_PREFIX,
            create_tables=False,  # schema.py has made them.
        )
        self._for_us = {*ledger.doorbells.values()}
        self._listener: threading.Thread | None = None
        self._ends = threading.Event()
        self._wake_read, self._wake_write = -1, -1

    def start_listening(self) -> None:
        """Begin to listen, in a thread of its own, until `stop_listening`."""
        self._wake_read, self._wake_write = os.pipe()
        self._listener = threading.Thread(target=self._listen_forever, name=LISTENER, daemon=True)
        self._listener.start()

    def stop_listening(self) -> None:
        """End that thread and its connection."""
        if self._listener is None:
            return
        self._ends.set()
        os.write(self._wake_write, b"!")
        self._listener.join(timeout=2.0)
        if not self._listener.is_alive():  # Else it is still connecting, and the pipe is still its own.
            os.close(self._wake_read)
            os.close(self._wake_write)
        self._listener = None

    def _listen_forever(self) -> None:
        self._pause = 0.0
        while not self._ends.wait(self._pause):
            try:
                self._listen()
            except (psycopg.Error, QueueUnavailable, OSError) as error:
                # Those who claim say so in the log; jobs are found meanwhile by looking.
                log.debug("not listening: %s", type(error).__name__)
                self._pause = min(LONGEST_PAUSE_SECONDS, max(0.5, self._pause * 2))
        self._close_listener()

    def _listen(self) -> None:
        conn = self._listen_conn()
        self._pause = 0.0
        self._bell.ring()  # For what came while nobody listened.
        while not self._ends.is_set():
            ready, _, _ = select.select([conn.fileno(), self._wake_read], [], [], LISTEN_SECONDS)
            if self._wake_read in ready:
                return
            if not ready:
                conn.execute("SELECT 1")
            if self._for_us.intersection(notice.payload for notice in conn.notifies(timeout=0)):
                self._bell.ring()

    def _close_listener(self) -> None:
        conn = getattr(self._listen_local, "conn", None)
        if conn is not None:
            with contextlib.suppress(psycopg.Error):
                conn.close()
