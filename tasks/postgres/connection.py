"""How the shared queue's database is reached: what the address leaves open, and what may be said of a failure."""

from __future__ import annotations

import ipaddress
import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo, errors, pq
from psycopg.abc import PQGen

from ...runtime.errors import QueueUnavailable

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 30
"""A server that takes longer for one statement is taken to be out of reach; nothing of it was done."""
STALLED_SECONDS = 25
"""Who says nothing for so long in mid-transaction is gone: the server ends the transaction, and with it the locks on
the job and its key, before the lease has expired."""
MESSAGE_CHARACTERS = 300

_USERS_OWN = {"PGPASSFILE"}
"""Of libpq's variables the one that counts. A repository can shape the environment (docs/adr/0023): it must not choose
the server, or that nothing is encrypted."""
_SECRETS = ("password", "sslpassword")


Result = TypeVar("Result")


class LinkRefused(QueueUnavailable):
    """`queue.url` allows a link on which passwords and text may be read; nothing was sent."""


class _Silent(psycopg.OperationalError):
    pass


class Impatient(psycopg.Connection[Any]):
    """A connection that is given up when the server takes what it is sent and never answers.

    The server's own limit does not help then, and keepalives do not either: a halted server's kernel answers those.
    """

    answer_seconds: float = STATEMENT_SECONDS + 5.0
    """Without a byte either way; 0 is no limit."""
    pooled: bool = False
    """A pooler is between (PgBouncer): the next transaction may be in another session of the server."""
    begin: bytes = b"BEGIN"
    """How a transaction begins: where no session is kept, with the limits that are otherwise the session's."""

    def wait(self, gen: PQGen[Result], *args: Any, **options: Any) -> Result:
        try:
            return super().wait(self._heard(gen), *args, **options)
        except _Silent:
            self.close()  # The answer may still come, and would be taken for that to the next question.
            raise

    def _heard(self, gen: PQGen[Result]) -> PQGen[Result]:
        """Time counts from the last byte that moved. The server's own limit on a statement counts all of it."""
        moved = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    moved = now
                elif 0 < self.answer_seconds < now - moved:
                    raise _Silent(f"no answer within {self.answer_seconds:.0f} s")
                state = gen.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result


SYSTEMS_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
"""Where Debian, Fedora and macOS keep them. The client library that psycopg brings along has a folder of its own for
`sslrootcert=system`, which is empty, and lets SSL_CERT_FILE of whoever runs a command choose another one."""


class Address:
    """`queue.url`, understood: where it leads and with which protection.

    Raises QueueUnavailable if it is none, LinkRefused if it may not be used.
    """

    def __init__(self, url: str, *, user: str | None = None, password: str | None = None) -> None:
        # The one variable that cannot be overruled by naming what it stands for.
        os.environ.pop("PGSERVICE", None)
        try:
            named: dict[str, Any] = {k: v for k, v in conninfo.conninfo_to_dict(url).items() if v is not None}
        except psycopg.Error:
            # libpq's words quote the piece that it could not read: it may be of the password.
            raise QueueUnavailable("queue.url is not an address of PostgreSQL that its client can read") from None
        if user is not None and user != named.get("user"):
            named.pop("password", None)
            named["user"] = user
        if password is not None:
            named["password"] = password
        self._named = named
        self.verifies_by_default = not _is_local(named) and "sslmode" not in named
        """The server must show a certificate, because the address does not say otherwise."""
        if self.verifies_by_default:
            named["sslmode"] = "verify-full"
            if "sslrootcert" not in named and not Path("~/.postgresql/root.crt").expanduser().exists():
                named["sslrootcert"] = next(filter(os.path.exists, SYSTEMS_AUTHORITIES), "system")
        elif not _is_local(named):
            mode = named["sslmode"]
            if mode in ("allow", "prefer"):
                raise LinkRefused(
                    f"queue.url says sslmode={mode}, which may send everything unencrypted: leave it away, and the "
                    "server must show a certificate, or write sslmode=disable if the network is yours alone"
                )
            if mode != "verify-full":
                # Whoever answers in the server's place is not to be told the password.
                named.setdefault("require_auth", "!password")

    @property
    def where(self) -> str:
        """Host and database, for people."""
        host, port = self._named.get("host", ""), self._named.get("port", "")
        place = f"{host or 'this machine'}{f':{port}' if port else ''}"
        return f"{self._named.get('dbname', '')} on {place}".strip()

    def connect(self, name: str, *, statement_seconds: float = STATEMENT_SECONDS) -> Impatient:
        """A connection that commits each statement by itself; `name` is seen by the server's administrator.

        `statement_seconds`: 0 is no limit. Raises psycopg.Error.
        """
        parameters = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": f"memoryvault {name}".strip(),
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": STATEMENT_SECONDS * 1000,
            **_without_surroundings(self._named, os.environ),
        }
        conn = Impatient.connect(**parameters, autocommit=True)
        if not statement_seconds:
            conn.answer_seconds = 0.0
        try:
            _set_limits(conn, statement_seconds)
        except BaseException:
            conn.close()
            raise
        return conn

    def said(self, error: psycopg.Error) -> str:
        """The server's or the client's words in one line, without a password."""
        text = " ".join((str(error) or type(error).__name__).split()).removeprefix("connection is bad: ")
        text = text.removeprefix("connection failed: ")
        for secret in (str(self._named.get(key, "")) for key in _SECRETS):
            if secret:
                text = text.replace(secret, "***")
        text = text[:MESSAGE_CHARACTERS]
        if "no password supplied" in text:
            text += " (~/.pgpass is the place for it)"
        if isinstance(error, errors.InsufficientPrivilege):
            text += " (the role must be a member of memoryvault_worker: `memory jobs queue migrate`)"
        if self.verifies_by_default and any(word in text for word in ("SSL", "certificate", "root.crt")):
            text += " (another machine must show a certificate: sslrootcert= says who signs it, sslmode= asks for less)"
        return text


def _set_limits(conn: Impatient, statement_seconds: float) -> None:
    """Not among the connection's options: those are the user's, and may name a schema."""
    limits = (
        f"statement_timeout = '{statement_seconds:.0f}s'",
        f"idle_in_transaction_session_timeout = '{STALLED_SECONDS}s'",
    )
    # The process that the greeting names is the server's own, unless somebody greets in its place.
    row = conn.execute("SELECT pg_backend_pid()").fetchone()
    conn.pooled = row is not None and row[0] != conn.info.backend_pid
    if conn.pooled:
        # Prepared in one session, another client's statement would answer to its name in the next.
        conn.prepare_threshold = None
        conn.begin = "; ".join(("BEGIN", *(f"SET LOCAL {limit}" for limit in limits))).encode()
        return
    # The server's own defaults keep the connection of a machine that is gone for two hours.
    keepalive = ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3")
    settings = (*limits, *keepalive, f"tcp_user_timeout = '{STATEMENT_SECONDS}s'")
    conn.execute("; ".join(f"SET {setting}" for setting in settings).encode())


def _is_local(named: Mapping[str, Any]) -> bool:
    """Whether nothing leaves this machine: UNIX sockets and addresses of its own alone. An entry in the user's service
    file may lead anywhere."""
    places = [str(named[key]) for key in ("hostaddr", "host") if named.get(key)]
    return all(_is_own(part.strip()) for place in places for part in place.split(",")) and not (
        "service" in named and not places
    )


def _is_own(host: str) -> bool:
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_surroundings(named: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The parameters, with those that libpq would take from the environment pinned to its defaults."""
    pinned: dict[str, Any] = {}
    for option in pq.Conninfo.get_defaults():
        keyword, variable = option.keyword.decode(), (option.envvar or b"").decode()
        if keyword not in named and variable in env and variable not in _USERS_OWN:
            pinned[keyword] = option.compiled.decode() if option.compiled else ""
    if "user" in pinned:
        pinned["user"] = pwd.getpwuid(os.geteuid()).pw_name
    return {**pinned, **named}
