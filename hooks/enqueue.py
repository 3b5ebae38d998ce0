"""Enqueue from a hook: a file in the spool, which the worker takes in within a second, or at once when it is woken.

A hook opens no database to record a session: no lock can delay it.
"""

from __future__ import annotations

import os
import time

from ..runtime.interpreter import socket_module


def spool_reflection(spool: str, session: str, delay: float | None) -> None:
    """Write the reflection of `session` (a valid id) as one JSON line to a new file in the spool, by rename.

    It is due in `delay` seconds, counted anew with each call (a quiet period), or at once when None. Raises OSError.
    """
    now = time.time()
    policy = "sooner" if delay is None else "later"
    line = (
        f'{{"kind":"reflect.session","args":{{"session":"{session}"}},'
        f'"unique_key":"reflect.session:{session}","run_at":{now + (delay or 0.0)!r},"policy":"{policy}"}}\n'
    )
    name = f"{spool}/{time.time_ns()}-{os.getpid()}.json"
    descriptor = os.open(name + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(line.encode())
        os.rename(name + ".tmp", name)
    except OSError:
        os.unlink(name + ".tmp")
        raise


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
