"""Connect httpx only to addresses that were checked, and stop at a deadline.

httpx limits the time of each read only, so that a server could send a byte a second for ever. And it resolves the name
again when it connects, when the name may point elsewhere (DNS rebinding). The certificate and the `Host` header are
still checked against the host of the URL.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import httpcore
import httpx


class PinnedBackend(httpcore.NetworkBackend):
    """Connects to one of `addresses`, without resolving the name."""

    def __init__(self, addresses: Sequence[str], connect_seconds: float, deadline: float) -> None:
        self._addresses = addresses
        self._connect_seconds = connect_seconds
        self._deadline = deadline
        self._backend = httpcore.SyncBackend()
        self.connected = False
        """Whether any address has answered."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers. Raises httpcore's ConnectError, ConnectTimeout."""
        failure: Exception = httpcore.ConnectError("no address to connect to")
        for address in self._addresses:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise httpcore.ConnectTimeout("out of time")
            try:
                stream = self._backend.connect_tcp(address, port, min(self._connect_seconds, left))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            self.connected = True
            return _DeadlineStream(stream, self._deadline)
        raise failure


class _DeadlineStream(httpcore.NetworkStream):
    """A stream whose reads and writes end at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("out of time")
        return left

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, self._left()), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class PinnedTransport(httpx.BaseTransport):
    """Transport over one connection of a PinnedBackend: no proxy, HTTP/1.1, no keep-alive."""

    def __init__(self, backend: PinnedBackend, context: ssl.SSLContext | None) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context, max_connections=1, max_keepalive_connections=0, network_backend=backend
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises the exceptions of httpcore."""
        url = request.url
        response = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()
