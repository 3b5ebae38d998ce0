"""A network that fails on demand: a TCP proxy on loopback, through which a test's clients reach their server."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 65_536
Address = str | tuple[str, int]
"""The path of a UNIX socket, or host and port."""


class Proxy:
    """Passes bytes between clients and `upstream` until it is told otherwise. Safe to call from any thread."""

    def __init__(self, upstream: Address) -> None:
        self._upstream = upstream
        self._open = threading.Event()
        self._open.set()
        self._delay_seconds = 0.0
        self._fatal: bytes | None = None
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._refusing = False
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name=f"proxy-{self.port}", daemon=True).start()

    # ---- faults

    def hold(self) -> None:
        """A partition: connections are accepted and stay up, no byte passes either way, the end of one neither."""
        self._open.clear()

    def heal(self) -> None:
        """Everything passes at once; what was held arrives late."""
        self._delay_seconds = 0.0
        self._refusing = False
        self._fatal = None
        self._open.set()

    def delay(self, seconds: float) -> None:
        """So much for everything that is sent, in each direction."""
        self._delay_seconds = seconds

    def cut(self) -> None:
        """All connections end as if the other side had closed them."""
        self._end(reset=False)

    def reset(self) -> None:
        """All connections end with a reset."""
        self._end(reset=True)

    def refuse(self) -> None:
        """As `reset`, and new connections meet the same until `heal`."""
        self._refusing = True
        self._end(reset=True)

    def lose_answers_after(self, sent: bytes) -> None:
        """What a client sends passes; once it holds these bytes, its connection ends before the answer."""
        self._fatal = sent

    def close(self) -> None:
        """The end of the proxy."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._end(reset=True)
        self._open.set()

    # ---- passing

    def _end(self, *, reset: bool) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            with suppress(OSError):
                if reset:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    each.shutdown(socket.SHUT_RDWR)
            # A thread may wait in recv: only shutdown wakes it; the reset goes out when the last one lets go.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RD)
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._sockets.add(client)
        if self._refusing:
            self._end(reset=True)
            return
        self._open.wait()
        try:
            server = self._connect()
        except OSError:
            client.close()
            return
        with self._lock:
            self._sockets.add(server)
        back = threading.Thread(target=self._pass, args=(server, client), daemon=True)
        back.start()
        self._pass(client, server)
        back.join()
        for each in (client, server):
            with self._lock:
                self._sockets.discard(each)
            each.close()

    def _connect(self) -> socket.socket:
        if isinstance(self._upstream, str):
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                server.connect(self._upstream)
            except OSError:
                server.close()
                raise
            return server
        return socket.create_connection(self._upstream, timeout=None)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._wait()
                fatal = self._fatal is not None and self._fatal in data
                if fatal:
                    source.shutdown(socket.SHUT_WR)  # Before it is sent: no answer is quick enough.
                target.sendall(data)
                if fatal:
                    time.sleep(0.2)  # The server does what it was told.
                    break
        self._wait()
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _wait(self) -> None:
        self._open.wait()
        if self._delay_seconds:
            time.sleep(self._delay_seconds)


@contextmanager
def proxy(upstream: Address) -> Iterator[Proxy]:
    """A running proxy; it and its connections are gone afterwards."""
    made = Proxy(upstream)
    try:
        yield made
    finally:
        made.close()
