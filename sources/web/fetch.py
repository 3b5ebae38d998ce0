"""Fetch pages safely: https from public addresses, bounded in time, size and number of requests.

The resolved address is checked, and the connection goes to exactly that address; each redirect is checked again. No
cookie and no credential is sent, and no proxy or netrc of the environment is used.

httpx is imported where a request is made: many commands import this module, few make a request.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ... import __version__
from ...runtime.errors import MemoryVaultError
from .addresses import Resolver, is_own_network, is_public, system_resolver
from .decoding import BodyBroken, decoded_text, unpacked

if TYPE_CHECKING:
    import ssl

    import httpx

USER_AGENT = f"MemoryVault/{__version__}"
MAX_URL_CHARS = 4096
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Limits:
    """Limits of one `get` with its redirects."""

    connect_seconds: float = 5.0
    total_seconds: float = 20.0
    """Wall-clock time to the last byte. What the system takes to look up a name counts, but is not cut short."""
    max_bytes: int = 2_000_000
    """Most bytes of the body, as sent and as decompressed."""
    max_redirects: int = 5


class FetchRefused(MemoryVaultError):
    """The URL is never requested: it is not https, not a public address, or it has credentials."""


class FetchFailed(MemoryVaultError):
    """A request was made, or tried, and gave no page."""

    def __init__(
        self, reason: str, *, status: int | None = None, retry_after: float | None = None, unsent: bool = False
    ) -> None:
        super().__init__(reason)
        self.status = status
        """HTTP status; None without an answer."""
        self.retry_after = retry_after
        """Seconds to wait, if the server says so."""
        self.unsent = unsent
        """True if before_request was called, but no connection was made."""


@dataclass(frozen=True)
class Page:
    """A successful answer: 2xx."""

    url: str
    """The URL after redirects."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case; values of equal names are joined by commas."""
    body: bytes

    @property
    def text(self) -> str:
        """The body, decoded by byte order mark, header or declaration; invalid bytes are replaced."""
        return decoded_text(self.body, self.headers.get("content-type", ""))

    @property
    def content_type(self) -> str:
        """Such as `text/html`; '' if the server gives none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Fetcher:
    """Fetches pages within `limits`.

    `before_request` is called with each URL right before its request, also of redirects; its exceptions pass through,
    so that a budget can stop a chain of redirects. `allow`: hosts and ports that may be requested over http and may be
    in the own network, such as a search engine that the user has named.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        before_request: Callable[[str], None] | None = None,
        allow: Collection[tuple[str, int]] = frozenset(),
        resolver: Resolver = system_resolver,
    ) -> None:
        self._limits = limits or Limits()
        self._before_request = before_request
        self._allow = frozenset((host.lower(), port) for host, port in allow)
        self._resolver = resolver

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content_types: Collection[str] | None = None,
    ) -> Page:
        """Return the page at `url`.

        Raises FetchRefused, FetchFailed (also for a type that is not one of `content_types`), and what before_request
        raises.
        """
        deadline = time.monotonic() + self._limits.total_seconds
        current = _parsed(url)
        for _ in range(self._limits.max_redirects + 1):
            addresses = self._checked(current)
            if self._before_request is not None:
                self._before_request(str(current))
            answer = self._request(current, addresses, headers or {}, deadline, content_types)
            if isinstance(answer, Page):
                return answer
            current = answer
        raise FetchFailed(f"{_shown(current)}: more than {self._limits.max_redirects} redirects")

    # ---- before the request

    def _checked(self, url: httpx.URL) -> list[str]:
        """Return the addresses that may be connected to. Raises FetchRefused, FetchFailed."""
        port = url.port or {"https": 443, "http": 80}.get(url.scheme, 0)
        host = url.raw_host.decode("ascii").lower()
        allowed = (host, port) in self._allow
        if url.scheme != "https" and not (allowed and url.scheme == "http"):
            raise FetchRefused(f"{_shown(url)}: only https is fetched")
        if url.userinfo:
            raise FetchRefused(f"{_shown(url)}: an address with credentials in it is not fetched")
        if not host:
            raise FetchRefused(f"{_shown(url)}: it names no host")
        if port != 443 and not allowed:
            raise FetchRefused(f"{_shown(url)}: port {port} is not fetched from")
        try:
            addresses = list(self._resolver(host, port))
        except (OSError, UnicodeError) as error:
            raise FetchFailed(f"{_shown(url)}: the name was not resolved ({error})") from error
        if not addresses:
            raise FetchFailed(f"{_shown(url)}: the name has no address")
        for address in addresses:
            if not (is_public(address) or (allowed and is_own_network(address))):
                raise FetchRefused(f"{_shown(url)}: {address} is not a public address")
        return addresses

    # ---- the request

    def _request(
        self,
        url: httpx.URL,
        addresses: list[str],
        headers: Mapping[str, str],
        deadline: float,
        content_types: Collection[str] | None,
    ) -> httpx.URL | Page:
        """Return the page, or the target of a redirect. No cookie or connection is kept."""
        import asyncio

        import httpx

        connected = False

        async def trace(event: str, _: object) -> None:
            nonlocal connected
            connected |= event == "connection.connect_tcp.complete"

        async def ask(address: str) -> httpx.URL | Page:
            # Not br and zstd: the size of their output cannot be limited while they decode.
            sent = {"accept": "*/*", **headers, "user-agent": USER_AGENT, "accept-encoding": "gzip"}
            # The name is not resolved again, since it may lead elsewhere by now (DNS rebinding).
            named = {"host": url.netloc.decode("ascii"), **sent}
            extensions = {"sni_hostname": url.raw_host.decode("ascii"), "trace": trace}
            timeout = httpx.Timeout(None, connect=self._limits.connect_seconds)
            tls = self._tls if url.scheme == "https" else False
            async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=timeout) as client:
                client.headers.clear()
                pinned = url.copy_with(host=address)
                async with client.stream("GET", pinned, headers=named, extensions=extensions) as response:
                    return await self._answer(url, response, content_types)

        async def ask_in_time() -> httpx.URL | Page:
            # httpx limits the time of each read only: a server could send a byte a second for ever.
            async with asyncio.timeout(deadline - time.monotonic()):
                for address in addresses[:-1]:
                    try:
                        return await ask(address)
                    except (httpx.ConnectError, httpx.ConnectTimeout):
                        if connected:
                            raise
                return await ask(addresses[-1])

        try:
            return asyncio.run(ask_in_time())
        except (TimeoutError, httpx.TimeoutException) as error:
            raise FetchFailed(f"{_shown(url)}: no answer in time", unsent=not connected) from error
        # httpx parses the target of a redirect that it does not follow.
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
            reason = str(_first_cause(error))[:200] or type(error).__name__
            raise FetchFailed(f"{_shown(url)}: {reason}", unsent=not connected) from error

    async def _answer(
        self, url: httpx.URL, response: httpx.Response, content_types: Collection[str] | None
    ) -> httpx.URL | Page:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.status_code in _REDIRECTS and "location" in headers:
            return _parsed(headers["location"], base=url)
        if not 200 <= response.status_code < 300:
            raise FetchFailed(
                f"{_shown(url)}: status {response.status_code}",
                status=response.status_code,
                retry_after=_retry_after(headers),
            )
        type_ = headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_types is not None and type_ not in content_types:
            raise FetchFailed(f"{_shown(url)}: its type is {type_[:60] or 'not given'!r}", status=response.status_code)
        most, received = self._limits.max_bytes, bytearray()
        too_large = FetchFailed(f"{_shown(url)}: more than {most} bytes", status=response.status_code)
        async for piece in response.aiter_raw():
            received += piece
            if len(received) > most:
                raise too_large
        try:
            body = unpacked(bytes(received), headers.get("content-encoding", ""), most)
        except BodyBroken as error:
            raise FetchFailed(f"{_shown(url)}: {error}", status=response.status_code) from error
        if len(body) > most:
            raise too_large
        return Page(str(url), response.status_code, headers, body)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import httpx

        return httpx.create_ssl_context(trust_env=False)  # Takes a tenth of a second.


def _first_cause(error: BaseException) -> BaseException:
    """Return the error of the system, which the layers below httpx replace by errors without a message."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _parsed(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Raises FetchRefused."""
    import httpx

    try:
        if len(text) > MAX_URL_CHARS:
            raise httpx.InvalidURL("too long")
        url = base.join(text) if base is not None else httpx.URL(text)
        _ = url.host  # Raises for an ASCII spelling that is no name.
        return url.copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        shown = re.split(r"[?#]", text, maxsplit=1)[0].rpartition("@")[2][:80]
        raise FetchRefused(f"{shown!r} is not an address: {error}") from error


def shown_address(text: str) -> str:
    """Return an address for messages and logs: without credentials, query and fragment, which may be secret."""
    try:
        return _shown(_parsed(text))
    except FetchRefused as error:
        return str(error)


def _shown(url: httpx.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))[:200]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, by a Retry-After header (number or date), else until a used-up rate limit resets."""
    text = headers.get("retry-after", "").strip()
    reset = headers.get("x-ratelimit-reset", "").strip()
    if not text and headers.get("x-ratelimit-remaining", "").strip() == "0" and _is_number(reset) and len(reset) < 12:
        return max(0.0, int(reset) - time.time())
    if _is_number(text) and len(text) < 10:
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()  # `"²".isdigit()` is true.
