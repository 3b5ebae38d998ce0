"""The guard that checks every request and sets the headers of every answer.

Pages of other sites in the same browser, and programs and other accounts of the machine, can reach a loopback address.
So, in this order: `Host` must be ours (DNS rebinding), `Origin` and `Sec-Fetch-Site` must name this console, the cookie
must be a session's, and a change must carry that session's token. Cookies ignore ports, and SameSite treats all ports
of a host as one site: so the cookie is limited to a random path, which is requested from no other server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .keys import Keys, Session

COOKIE = "memory-console"
CSRF_FIELD = "csrf"
MAX_FORM_BYTES = 4_000_000
MAX_FORM_FIELDS = 2_000
FORM_TYPE = "application/x-www-form-urlencoded"

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    # With `no-referrer` a form would send `Origin: null`.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

Refuse = Callable[[int, str], Response]


class Guard:
    """The application behind the checks. `refuse` makes the answer to a refused request from a status and one line."""

    def __init__(self, app: ASGIApp, keys: Keys, *, authority: str, place: str, refuse: Refuse) -> None:
        self._app = app
        self._keys = keys
        self._authority = authority
        """Host and port, as `Host` must say it."""
        self._base = f"/{place}/"
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        answer = self._with_headers(send)
        headers = Headers(scope=scope)
        refusal = self._outsider(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, answer)
            return
        path = scope["path"]
        if path == self._base + "enter":
            await self._enter(scope)(scope, receive, answer)
            return
        if path.startswith(self._base + "static/") and scope["method"] != "POST":
            await self._app(scope, receive, answer)
            return
        session = self._keys.session(self._cookie(headers))
        if session is None:
            line = "This window is not signed in. Open the link that `memory console` prints."
            await self._refuse(403, line)(scope, receive, answer)
            return
        state = scope.setdefault("state", {})
        state["session"] = session
        state["form"] = {}
        if scope["method"] == "POST":
            refusal = await self._change(headers, receive, session, state)
            if refusal is not None:
                await refusal(scope, receive, answer)
                return
        await self._app(scope, receive, answer)

    def _outsider(self, scope: Scope, headers: Headers) -> Response | None:
        """The refusal of a request that is wrong with any session; None if there is none."""
        if headers.getlist("host") != [self._authority]:
            return self._refuse(421, "This console answers under its own address only.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return self._refuse(405, "There is nothing to do here with this method.")
        if not scope["path"].startswith(self._base):
            return self._refuse(404, "There is no such page. Open the link that `memory console` prints.")
        origins = headers.getlist("origin")
        if any(origin != f"http://{self._authority}" for origin in origins):
            return self._refuse(403, "This request was made by another site; nothing was done.")
        if scope["method"] == "POST" and not origins:
            return self._refuse(403, "This request does not say where it comes from; nothing was done.")
        # The link may be followed from anywhere (a terminal in the browser, our own file), since it is a secret.
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not (
            scope["path"] == self._base + "enter" and scope["method"] == "GET"
        ):
            return self._refuse(403, "Another site led here. Open the console from its own window.")
        return None

    def _enter(self, scope: Scope) -> Response:
        """Exchange the link's token for a cookie."""
        if scope["method"] != "GET":
            return self._refuse(405, "A link is opened, nothing else.")
        tokens = [value for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name == "token"]
        session = self._keys.exchange(tokens[0]) if len(tokens) == 1 else "unknown"
        if not isinstance(session, Session):
            why = {"used": "was used already", "expired": "is too old", "unknown": "is none of this console's"}[session]
            return self._refuse(403, f"This link {why}. Press Enter in the console's terminal for a new one.")
        # No redirect: a browser does not send SameSite=Strict cookies in a chain that another site began.
        response = Response(
            f'<!doctype html><html lang="en"><title>MemoryVault</title>'
            f'<link rel="icon" href="{self._base}static/icon.svg" type="image/svg+xml">'
            f'<meta http-equiv="refresh" content="0; url={self._base}"><p><a href="{self._base}">Go on</a></p></html>',
            media_type="text/html",
        )
        response.set_cookie(COOKIE, session.cookie, path=self._base, httponly=True, samesite="strict")
        return response

    async def _change(
        self, headers: Headers, receive: Receive, session: Session, state: dict[str, object]
    ) -> Response | None:
        """Read the form of a change into `state["form"]`, which is all that pages get of it; or return a refusal."""
        if headers.get("content-type", "").split(";")[0].strip().lower() != FORM_TYPE:
            return self._refuse(415, "A change comes as a form.")
        body = await _read(receive)
        if body is None:
            return self._refuse(413, "That is too much for one form.")
        try:
            fields = dict(
                parse_qsl(
                    body.decode("utf-8"),
                    keep_blank_values=True,
                    strict_parsing=bool(body),
                    errors="strict",
                    max_num_fields=MAX_FORM_FIELDS,
                )
            )
        except (ValueError, UnicodeError):
            return self._refuse(400, "The form cannot be read.")
        if not session.is_own(fields.pop(CSRF_FIELD, "")):
            return self._refuse(403, "This form is not of this window's session; nothing was done. Load it again.")
        state["form"] = fields
        return None

    def _cookie(self, headers: Headers) -> str:
        # Another server of this machine can set a cookie of our name for all paths; the longest path comes first.
        for header in headers.getlist("cookie"):
            for part in header.split(";"):
                name, _, value = part.strip().partition("=")
                if name == COOKIE:
                    return value
        return ""

    def _with_headers(self, send: Send) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        return answer


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None if it is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_FORM_BYTES:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
