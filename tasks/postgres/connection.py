"""How the shared queue's database is reached: what the address leaves open, and what may be said of a failure."""

from __future__ import annotations

import ipaddress
import os
import pwd
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo, errors, pq
from psycopg.abc import RV, PQGen

from ...vault.errors import QueueUnavailable

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 30
"""A server that takes longer for one statement is taken to be out of reach; nothing of it was done."""
WAIT_SECONDS = 0.1
"""How often a wait looks whether it was interrupted; psycopg's own default."""
MESSAGE_CHARACTERS = 300

_USERS_OWN = {"PGPASSFILE"}
"""Of libpq's variables the one that counts. A repository can shape the environment (docs/adr/0023): it must not choose
the server, or that nothing is encrypted."""
_SESSION = f"""
    SET idle_in_transaction_session_timeout = '{STATEMENT_SECONDS}s';
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '{STATEMENT_SECONDS}s';
""".encode()
"""What a machine has locked that was cut off or halted in mid-transaction is free again then, not after two hours."""
_SECRETS = ("password", "sslpassword")


class Impatient(psycopg.Connection[Any]):
    """A connection that is given up when the server takes what it is sent and never answers.

    The server's own limit does not help then, and keepalives do not either: a halted server's kernel answers those.
    """

    answer_seconds: float = STATEMENT_SECONDS + 5.0

    def wait(self, gen: PQGen[RV], interval: float = WAIT_SECONDS, timeout: float | None = None) -> RV:
        """psycopg's own, with a limit where the caller has none."""
        if timeout is not None or not self.answer_seconds:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.answer_seconds)
        except errors._WaitTimeout:
            self.pgconn.finish()  # What comes yet is the answer to something else.
            raise psycopg.OperationalError(f"no answer within {self.answer_seconds:.0f} s") from None


class Address:
    """`queue.url`, understood: where it leads and with which protection. Raises QueueUnavailable if it is none."""

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
        self.verifies_by_default = not _is_local(named) and "sslmode" not in named and "service" not in named
        """The server must show a certificate, because the address does not say otherwise."""
        if self.verifies_by_default:
            named["sslmode"] = "verify-full"
            if "sslrootcert" not in named and not Path("~/.postgresql/root.crt").expanduser().exists():
                named["sslrootcert"] = "system"

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
            # Not among the connection's options: those are the user's, and may name a schema.
            conn.execute(_SESSION + f"SET statement_timeout = '{statement_seconds:.0f}s'".encode())
        except BaseException:
            conn.close()
            raise
        return conn

    def said(self, error: psycopg.Error) -> str:
        """The server's or the client's words in one line, without a password."""
        text = " ".join((str(error) or type(error).__name__).split()).removeprefix("connection is bad: ")
        text = text[:MESSAGE_CHARACTERS]
        for secret in (str(self._named.get(key, "")) for key in _SECRETS):
            if secret:
                text = text.replace(secret, "***")
        if isinstance(error, errors.InsufficientPrivilege):
            text += " (the role must be a member of memoryvault_worker: `memory queue migrate`)"
        if self.verifies_by_default and any(word in text for word in ("SSL", "certificate", "root.crt")):
            text += " (another machine must show a certificate: sslrootcert= says who signs it, sslmode= asks for less)"
        return text


def _is_local(named: Mapping[str, Any]) -> bool:
    """Whether nothing leaves this machine: a UNIX socket, or an address of its own."""
    places = [str(named.get(key) or "") for key in ("hostaddr", "host")]
    return all(_is_own(part.strip()) for part in (places[0] or places[1]).split(","))


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
