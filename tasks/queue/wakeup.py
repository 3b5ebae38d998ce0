"""The wake-up: a datagram on a UNIX socket tells the worker that a job is due.

It is only a hint: the sender ignores all errors, and the worker polls every second anyway.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from ...runtime.layout import leave_socket_folder, make_socket_folder

log = logging.getLogger(__name__)

DATAGRAM = b"1"
"""A datagram may go on with a space and the client's version."""


def wake_worker(wake_socket: Path | str, version: str = "") -> None:
    """Wake the worker that listens there, if any. Never blocks, never raises."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.sendto(DATAGRAM + (f" {version}".encode() if version else b""), os.fspath(wake_socket))


class Wakeup:
    """Threads wait on it. `wake` wakes them all, and so does a datagram once it is open."""

    def __init__(self, wake_socket: Path | str, *, on_datagram: Callable[[str], None] | None = None) -> None:
        self._changed = threading.Condition()
        self._calls = 0
        self._path = os.fspath(wake_socket)
        self._on_datagram = on_datagram
        self._socket: socket.socket | None = None
        self._inode: int | None = None
        self._thread: threading.Thread | None = None

    @property
    def calls(self) -> int:
        """The number of calls of `wake`: read it, look for work, then `wait` for a change."""
        return self._calls

    def wake(self) -> None:
        """Wake every waiting thread."""
        with self._changed:
            self._calls += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Return when `wake` is called after `seen` was read, or after that time."""
        with self._changed:
            self._changed.wait_for(lambda: self._calls != seen, timeout=seconds)

    def open(self) -> None:
        """Bind the socket, replacing a dead worker's. If that fails, the worker relies on polling."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            make_socket_folder(self._path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            sock.bind(self._path)
            os.chmod(self._path, 0o600)
            self._inode = os.stat(self._path).st_ino
        except OSError as error:
            sock.close()
            log.warning("no wake-up socket at %s (%s): jobs start up to a second later", self._path, error)
            return
        self._socket = sock
        self._thread = threading.Thread(target=self._listen, args=(sock,), name="wakeup", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Unbind the socket and wake all threads."""
        sock, self._socket = self._socket, None
        if sock is not None:
            with contextlib.suppress(OSError):
                if os.stat(self._path).st_ino == self._inode:  # Not the socket of a worker that took over.
                    wake_worker(self._path)  # Ends the thread's recv at once.
                    os.unlink(self._path)
                    leave_socket_folder(self._path)
            if self._thread is not None:
                self._thread.join(timeout=1.0)
            sock.close()
        self.wake()

    def _listen(self, sock: socket.socket) -> None:
        sock.settimeout(0.5)  # Limits `close` if that datagram is lost.
        while self._socket is sock:
            try:
                data = sock.recv(64)
                if not data:
                    continue
            except TimeoutError:
                continue
            except OSError:
                return
            self.wake()
            if self._on_datagram is not None:
                self._on_datagram(data[len(DATAGRAM) :].strip().decode("ascii", "replace"))
