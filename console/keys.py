"""Who may come in: links that open the console once, and the sessions that they were exchanged for.

All of it is in memory: a console that is stopped has let nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

LINK_SECONDS = 300.0
"""How long a link can be used. Long enough to copy it from a terminal by hand."""
SESSION_SECONDS = 12 * 3600.0
"""A browser that was not seen for this long has to come with a new link."""
MOST_SESSIONS = 32
"""More browsers than a person has; the one unseen for longest has to come again."""

Refusal = Literal["used", "expired", "unknown"]


@dataclass(frozen=True)
class Session:
    """One browser that came with a good link."""

    cookie: str
    csrf: str
    """Stands in every form: a page of another origin cannot read it."""

    def is_own(self, csrf: str) -> bool:
        """Whether a form was made for this session."""
        return hmac.compare_digest(self.csrf.encode(), csrf.encode("utf-8", "replace"))


class Keys:
    """Single-use links and sessions. Secrets are looked up by their digest, so that no look-up tells by its time."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        link_seconds: float = LINK_SECONDS,
        session_seconds: float = SESSION_SECONDS,
    ) -> None:
        self._now = now
        self._link_seconds = link_seconds
        self._session_seconds = session_seconds
        self._lock = threading.Lock()
        self._links: dict[bytes, float] = {}
        """Digest of the token, and until when it holds; 0.0: it was used."""
        self._sessions: dict[bytes, tuple[Session, float]] = {}

    def new_link(self) -> str:
        """A token for the first URL."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links[_digest(token)] = self._now() + self._link_seconds
        return token

    def exchange(self, token: str) -> Session | Refusal:
        """A session for the token, once."""
        digest = _digest(token)
        with self._lock:
            until = self._links.get(digest)
            if until is None:
                return "unknown"
            if until == 0.0:
                return "used"
            if self._now() > until:
                return "expired"
            self._links[digest] = 0.0
            session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
            while len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[min(self._sessions, key=lambda known: self._sessions[known][1])]
            self._sessions[_digest(session.cookie)] = (session, self._now())
            return session

    def session(self, cookie: str, *, is_seen: bool = True) -> Session | None:
        """The session of a cookie; None when there is none or it was idle for too long.

        `is_seen`: somebody did something, from which its idle time counts anew; a page that asks by itself did not.
        """
        digest = _digest(cookie)
        with self._lock:
            found = self._sessions.get(digest)
            if found is None:
                return None
            session, seen = found
            if self._now() - seen > self._session_seconds:
                del self._sessions[digest]
                return None
            if is_seen:
                self._sessions[digest] = (session, self._now())
            return session


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
