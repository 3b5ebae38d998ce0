"""Pauses and back-off for each host that discovery asks, kept in state.db across runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from ..cursors import Cursors
from .fetch_child import Fetch, FetchRequest, FetchResult

PAUSE_SECONDS = 2.0
"""Pause between two requests to one host."""
FIRST_BACKOFF_SECONDS = 300.0
LIMIT_BACKOFF_SECONDS = 3600.0
"""Pause after a 403 or 429 that names no time: GitHub's allowance is per hour."""
LONGEST_BACKOFF_SECONDS = 86_400.0


def host_of(url: str) -> str:
    """Return the host and port of an address."""
    return urlsplit(url).netloc.rpartition("@")[2].lower()


class AskedHost:
    """The limits of one host."""

    def __init__(
        self,
        cursors: Cursors,
        url: str,
        *,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = host_of(url)
        self._cursors = cursors
        self._key = f"host:{self.name}"
        self._clock = clock
        self._pause = pause

    def not_before(self) -> float:
        """Return the Unix time before which the host is not asked; 0 if it may be."""
        state = self._cursors.get(self._key) or {}
        until = float(state.get("not_before") or 0)
        left = until - self._clock()
        # A time further ahead was stored by a clock that was ahead itself.
        return until if 0 < left <= LONGEST_BACKOFF_SECONDS else 0.0

    def left_alone(self) -> str:
        """Return in words until when the host must not be asked; '' if it may be asked now."""
        until = self.not_before()
        if not until:
            return ""
        return f"{self.name} is left alone until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"

    def ask(self, fetch: Fetch, request: FetchRequest) -> FetchResult | None:
        """Return the response; None if the host is to be left alone."""
        if self.not_before():
            return None
        self.be_polite()
        result = fetch(request)
        self.remember(result)
        return result

    def be_polite(self) -> None:
        """Wait until the required pause after the last request is over."""
        asked = float((self._cursors.get(self._key) or {}).get("asked") or 0)
        wait = min(PAUSE_SECONDS, asked + PAUSE_SECONDS - self._clock())
        if wait > 0:
            self._pause(wait)

    def remember(self, result: FetchResult) -> None:
        """Store whether the host failed, or is used up. A missing or refused page is no failure of the host."""
        state = dict(self._cursors.get(self._key) or {})
        limited = result.status in (403, 429)
        failed = bool(result.problem) and not result.refused
        now = self._clock()
        state["asked"] = now
        if failed and (limited or result.status is None or result.status >= 500):
            failures = int(state.get("failures") or 0) + 1
            base = LIMIT_BACKOFF_SECONDS if limited else FIRST_BACKOFF_SECONDS
            if result.retry_after is None:
                pause = base * 2.0 ** min(failures - 1, 16)
            else:  # Obeyed once: a host that says "at once" each time would use up all attempts in seconds.
                again = FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 2, 16) if failures > 1 else 0.0
                pause = max(result.retry_after, again)
            # Some servers send milliseconds: a wrong value must not silence a host for years.
            pause = min(max(pause, PAUSE_SECONDS), LONGEST_BACKOFF_SECONDS)
            state |= {"failures": failures, "not_before": now + pause}
        else:
            state |= {"failures": 0, "not_before": 0.0}
        self._cursors.set(self._key, state)
