"""Enqueue from a hook: write a row in the ledger, and huey's message if it is due now; else a file in the spool.

The schema belongs to `tasks/queue/schema.py`; this module knows the columns it writes and the version they belong to. A
hook never creates queue.db: a job that cannot be enqueued within LOCK_PATIENCE_SECONDS is spooled, and the worker
enqueues it.
"""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import socket_module
from .sqlite import open_database

SCHEMA_VERSION = 1
LOCK_PATIENCE_SECONDS = 0.04
"""How long a hook waits for another writer's lock; a commit takes a few milliseconds."""
NOW = "(julianday('now')-2440587.5)*86400.0"
"""Unix seconds by the clock of the database; SQLite before 3.42 has no unixepoch('subsec')."""

PRIORITY = 10
"""Priority of `reflect.session`."""
AGING_SECONDS = 60.0
"""How long a wait one point of priority is worth. A job of priority p overtakes one of priority q only if that has
waited less than (p - q) * AGING_SECONDS longer, so endless urgent work cannot starve the rest."""

_INSERT = (
    "INSERT INTO job(kind, args, unique_key, priority, run_at, created_at)"
    f" VALUES('reflect.session', ?, ?, {PRIORITY}, {NOW} + ?, {NOW})"
    " ON CONFLICT(unique_key) WHERE state = 'queued' AND unique_key IS NOT NULL DO UPDATE SET run_at = "
)
# A quiet period starts again with every turn; a job that is due at once is never delayed.
ENQUEUE_LATER = _INSERT + "excluded.run_at RETURNING id, sent_at, run_at"
ENQUEUE_SOONER = _INSERT + "min(job.run_at, excluded.run_at) RETURNING id, sent_at, run_at"
RING = f"INSERT INTO task(queue, data, priority) VALUES('memoryvault', ?, {PRIORITY * AGING_SECONDS} - ?)"
MARK_SENT = f"UPDATE job SET sent_at = {NOW} WHERE id = ?"


def enqueue_reflection(queue_db: str, spool: str, session: str, delay: float | None) -> str:
    """Enqueue the reflection of `session` (a valid id): in `delay` seconds from now, or at once when None.

    Returns '', or the error that kept the job from the queue and put it into the spool. Raises OSError only when
    neither can be written.
    """
    try:
        _insert(queue_db, session, delay)
    except Exception as error:  # noqa: BLE001  Whatever is wrong with the queue, the spool keeps the job.
        spool_reflection(spool, session, delay)
        return f"{type(error).__name__}: {error}"
    return ""


def spool_reflection(spool: str, session: str, delay: float | None) -> None:
    """Write the job as one JSON line to a new file in the spool, by rename. Raises OSError."""
    now = time.time()
    policy = "sooner" if delay is None else "later"
    line = (
        f'{{"kind":"reflect.session","args":{{"session":"{session}"}},'
        f'"unique_key":"reflect.session:{session}","run_at":{now + (delay or 0.0)!r},"policy":"{policy}"}}\n'
    )
    name = f"{spool}/{time.time_ns()}-{os.getpid()}.json"
    descriptor = os.open(name + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
    os.rename(name + ".tmp", name)


def _insert(queue_db: str, session: str, delay: float | None) -> None:
    connection = open_database(queue_db, "rw", LOCK_PATIENCE_SECONDS)
    # FULL is SQLite's default, but a build may change it; a job must survive a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    # The worker checkpoints every few seconds: here it would take the user's time. But if no worker ever runs the log
    # must not grow without limit, since the first process to open the file reads all of it.
    connection.execute("PRAGMA wal_autocheckpoint = 2000")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        raise RuntimeError(f"queue.db has schema {version}, these hooks write schema {SCHEMA_VERSION}")
    connection.execute("BEGIN IMMEDIATE")
    statement = ENQUEUE_SOONER if delay is None else ENQUEUE_LATER
    values = (f'{{"session":"{session}"}}', f"reflect.session:{session}", delay or 0.0)
    # All rows are fetched: with RETURNING the change is complete only then.
    ((job, sent_at, run_at),) = connection.execute(statement, values).fetchall()
    if not delay and sent_at is None:
        message = f'{{"id":"{os.urandom(16).hex()}","name":"memoryvault.run","args":[{job}]}}'
        connection.execute(RING, (message.encode(), run_at))
        connection.execute(MARK_SENT, (job,))
    connection.execute("COMMIT")
    # Not closed: the process is about to end, and closing would checkpoint the log, which takes the user's time.


def wake_worker(wake_socket: str) -> bool:
    """Wake the worker by one datagram; False when none listens. Never blocks, never raises."""
    sockets = socket_module()
    try:
        sender = sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM)
        try:
            sender.setblocking(False)
            sender.sendto(b"1", wake_socket)
        finally:
            sender.close()
    except BlockingIOError:
        return True  # Its buffer is full of datagrams: the worker runs, and will read them.
    except OSError:
        return False
    return True
