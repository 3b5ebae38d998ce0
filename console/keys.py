"""Access: links that open the console once, and the sessions that they are exchanged for. All of it is in memory."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

LINK_SECONDS = 300.0
"""How long a link is valid: long enough to copy it from a terminal by hand."""
SESSION_SECONDS = 12 * 3600.0
"""How long an unused session is valid; after that the browser needs a new link."""
MOST_SESSIONS = 32
"""More than a user has browsers; beyond it the longest unused session ends."""

Refusal = Literal["used", "expired", "unknown"]


@dataclass(frozen=True)
class Session:
    """One browser that opened a valid link."""

    cookie: str
    csrf: str
    """Token in every form, which a page of another origin cannot read."""

    def is_own(self, csrf: str) -> bool:
        """Whether a form's token is this session's."""
        return hmac.compare_digest(self.csrf.encode(), csrf.encode("utf-8", "replace"))


class Keys:
    """Single-use links and sessions. Secrets are looked up by digest, against timing attacks."""

    def __init__(self, now: Callable[[], float], *, link_seconds: float = LINK_SECONDS) -> None:
        self._now = now
        self._link_seconds = link_seconds
        self._lock = threading.Lock()
        self._links: dict[bytes, float] = {}
        """Digest of the token -> monotonic time of its end; 0.0: it was used."""
        self._sessions: dict[bytes, tuple[Session, float]] = {}

    def new_link(self) -> str:
        """A new token for a link."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._links[_digest(token)] = self._now() + self._link_seconds
        return token

    def exchange(self, token: str) -> Session | Refusal:
        """Exchange a token for a session, once; else the reason for the refusal."""
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

    def session(self, cookie: str) -> Session | None:
        """The session of a cookie, whose idle time starts anew; None if there is none or it was unused for too long."""
        digest = _digest(cookie)
        with self._lock:
            found = self._sessions.get(digest)
            if found is None:
                return None
            session, seen = found
            if self._now() - seen > SESSION_SECONDS:
                del self._sessions[digest]
                return None
            self._sessions[digest] = (session, self._now())
            return session


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
