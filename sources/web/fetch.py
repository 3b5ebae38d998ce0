"""The guarded fetcher: public addresses, https, bounded in time, size, and number of requests.

What it reaches is decided on the resolved address, and the connection goes to exactly that address; each redirect
is judged again. It sends no cookie, no credential, and reads no proxy or netrc from the environment.

httpx is imported where a request is made: many commands know of this module, few of them make one.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import __version__
from ...runtime.errors import MemoryVaultError
from .addresses import Resolver, is_own_network, is_public, resolve_within, system_resolver
from .decoding import BodyBroken, BodyTooLarge, BoundedBody, decoded_text

if TYPE_CHECKING:
    import ssl

    import httpx

USER_AGENT = f"MemoryVault/{__version__}"
MAX_URL_CHARS = 4096
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONDITIONS = frozenset({"if-none-match", "if-modified-since"})
_NOT_FOR_OTHERS = _CONDITIONS | {"authorization", "cookie"}
"""Headers that are not carried to another host."""


@dataclass(frozen=True)
class Limits:
    """What one `get` may take, its redirects included."""

    connect_seconds: float = 5.0
    total_seconds: float = 20.0
    """By the wall clock, from the look-up of the name to the last byte."""
    max_bytes: int = 2_000_000
    """Of the body, as sent and as decompressed."""
    max_redirects: int = 5


class FetchRefused(MemoryVaultError):
    """The URL is one that is never asked for: not https, not a public address, or it carries credentials."""


class FetchFailed(MemoryVaultError):
    """The request was made, or tried, and brought no page."""

    def __init__(
        self, reason: str, *, status: int | None = None, retry_after: float | None = None, unsent: bool = False
    ) -> None:
        super().__init__(reason)
        self.status = status
        """The HTTP status; None if there was no answer."""
        self.retry_after = retry_after
        """Seconds to wait, if the server named them."""
        self.unsent = unsent
        """The request was announced to before_request, but no connection came about to send it over."""


@dataclass(frozen=True)
class Page:
    """An answer that is no error: 2xx, or 304 to a request with a condition."""

    url: str
    """The last one, after redirects."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case; of several with one name, all, with commas."""
    body: bytes
    requests: int
    """How many were made for it, redirects included."""

    @property
    def text(self) -> str:
        """The body, decoded by byte order mark, header or the page's own word; broken bytes are replaced."""
        return decoded_text(self.body, self.headers.get("content-type", ""))

    @property
    def content_type(self) -> str:
        """As in `text/html`; '' if the server named none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Fetcher:
    """Gets pages within `limits`.

    `before_request` is called with each URL right before its request, redirects included; what it raises passes
    through, so that a budget can stop a chain of redirects. `allow` names hosts and ports that may be asked over
    http and may lie in the own network: those of the tests, and a search engine that the user has named.
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
        self._context: ssl.SSLContext | None = None

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content_types: Collection[str] | None = None,
    ) -> Page:
        """The page; it fails if its type is not one of `content_types`.

        Raises FetchRefused, FetchFailed, and what before_request raises.
        """
        import httpx

        deadline = time.monotonic() + self._limits.total_seconds
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        current = _parsed(url)
        requests = 0
        while True:
            addresses = self._checked(current, deadline)
            if self._before_request is not None:
                self._before_request(str(current))
            requests += 1
            answer = self._request(current, addresses, sent, deadline, content_types)
            if isinstance(answer, httpx.URL):
                if requests > self._limits.max_redirects:
                    raise FetchFailed(f"{_shown(current)}: more than {self._limits.max_redirects} redirects")
                if (answer.scheme, answer.host, answer.port) != (current.scheme, current.host, current.port):
                    sent = {name: value for name, value in sent.items() if name not in _NOT_FOR_OTHERS}
                current = answer
                continue
            status, answered, body = answer
            return Page(str(current), status, answered, body, requests)

    # ---- before the request

    def _checked(self, url: httpx.URL, deadline: float) -> list[str]:
        """The addresses it may be asked at. Raises FetchRefused, FetchFailed."""
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
            addresses = list(resolve_within(self._resolver, host, port, deadline - time.monotonic()))
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
    ) -> httpx.URL | tuple[int, Mapping[str, str], bytes]:
        """Where it redirects to, or status, headers and body. A client of its own: no cookie, no connection is kept."""
        import httpcore
        import httpx

        from .pinned import PinnedBackend, PinnedTransport

        backend = PinnedBackend(addresses, self._limits.connect_seconds, deadline)
        # br and zstd are not asked for: their decoders can't be held to a size while they run.
        sent = {"accept": "*/*", **headers, "user-agent": USER_AGENT, "accept-encoding": "gzip, deflate"}
        transport = PinnedTransport(backend, self._tls() if url.scheme == "https" else None)
        try:
            with httpx.Client(transport=transport, trust_env=False, follow_redirects=False, timeout=None) as client:
                client.headers.clear()
                with client.stream("GET", url, headers=sent) as response:
                    if response.status_code == 304 and _CONDITIONS.isdisjoint(sent):
                        raise FetchFailed(f"{_shown(url)}: status 304, though nothing of it is known here", status=304)
                    return self._answer(url, response, deadline, content_types)
        except (httpcore.TimeoutException, httpx.TimeoutException) as error:
            raise FetchFailed(f"{_shown(url)}: no answer in time", unsent=not backend.connected) from error
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            UnicodeError,  # httpx looks at where a redirect leads, also if it is told not to follow it.
            OSError,
        ) as error:
            reason = str(error)[:200] or type(error).__name__
            raise FetchFailed(f"{_shown(url)}: {reason}", unsent=not backend.connected) from error

    def _answer(
        self, url: httpx.URL, response: httpx.Response, deadline: float, content_types: Collection[str] | None
    ) -> httpx.URL | tuple[int, Mapping[str, str], bytes]:
        import httpcore

        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.status_code in _REDIRECTS and "location" in headers:
            return _parsed(headers["location"], base=url)
        if response.status_code != 304 and not 200 <= response.status_code < 300:
            raise FetchFailed(
                f"{_shown(url)}: status {response.status_code}",
                status=response.status_code,
                retry_after=_retry_after(headers),
            )
        type_ = headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_types is not None and response.status_code != 304 and type_ not in content_types:
            raise FetchFailed(f"{_shown(url)}: its type is {type_[:60] or 'not given'!r}", status=response.status_code)
        try:
            body = BoundedBody(headers.get("content-encoding", ""), self._limits.max_bytes)
            for piece in response.iter_raw():
                body.feed(piece)
                if time.monotonic() > deadline:
                    raise httpcore.ReadTimeout("out of time")
            return response.status_code, headers, body.finish()
        except BodyTooLarge:
            limit = f"more than {self._limits.max_bytes} bytes"
            raise FetchFailed(f"{_shown(url)}: {limit}", status=response.status_code) from None
        except BodyBroken as error:
            raise FetchFailed(f"{_shown(url)}: {error}", status=response.status_code) from error

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            import httpx

            self._context = httpx.create_ssl_context(trust_env=False)
        return self._context


def _parsed(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Raises FetchRefused."""
    import httpx

    try:
        if len(text) > MAX_URL_CHARS:
            raise httpx.InvalidURL("too long")
        url = base.join(text) if base is not None else httpx.URL(text)
        _ = url.host  # Read from its ASCII spelling, which may be that of no name.
        return url.copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        shown = re.split(r"[?#]", text, maxsplit=1)[0].rpartition("@")[2][:80]
        raise FetchRefused(f"{shown!r} is not an address: {error}") from error


def shown_address(text: str) -> str:
    """An address for messages and logs: without credentials, query and fragment, where secrets stand."""
    try:
        return _shown(_parsed(text))
    except FetchRefused as error:
        return str(error)


def _shown(url: httpx.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))[:200]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from a Retry-After header: a number or a date; else until an allowance that is used up begins anew."""
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
    return text.isascii() and text.isdigit()  # A raised two is a digit, too, and none to `int`.
