"""Connections to the shared queue: which links are trusted with it, and how long an answer is waited for.

What is sent is text of sessions and a password, so a server beyond this machine must prove who it is (`verify-full`)
unless the user's own address says otherwise. No variable of the environment has a say but PGPASSFILE: a repository may
have set it (docs/adr/0023-a-repository-chooses-no-place.md).
"""

from __future__ import annotations

import ipaddress
import os
import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from ...vault.errors import QueueUnavailable

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 30
"""A server that takes longer for one statement is taken to be out of reach; nothing of it was done."""
SILENCE_SECONDS = STATEMENT_SECONDS + 5.0
"""The server gives up first, if it is still there."""
STALLED_SECONDS = 25
"""Who says nothing for so long in mid-transaction is gone: the server ends the transaction, and with it the locks on
the job and its key, before the lease has expired."""

Result = TypeVar("Result")


class _Silent(psycopg.OperationalError):
    pass


class LinkRefused(QueueUnavailable):
    """The address in `queue.url` would send passwords and text where they may be read; nothing was sent."""


class _Patient(psycopg.Connection[Any]):
    """Gives up on a server that says nothing: the network may swallow an answer without ending the connection."""

    def wait(self, gen: PQGen[Result], interval: float = 0.1, timeout: float | None = None) -> Result:
        try:
            return super().wait(self._heard(gen), interval, timeout)
        except _Silent:
            self.close()  # The answer may still come, and would be taken for that to the next question.
            raise

    def _heard(self, gen: PQGen[Result]) -> PQGen[Result]:
        """Time counts from the last byte that moved: a large result on a slow line takes as long as it takes."""
        moved = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    moved = now
                elif now - moved > SILENCE_SECONDS:
                    raise _Silent(f"no answer for {SILENCE_SECONDS:.0f} s")
                state = gen.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result


def connect(conninfo: str) -> psycopg.Connection[Any]:
    """A connection in autocommit mode to the server of `conninfo` (a URL or `key=value` pairs, as libpq takes them).

    Raises LinkRefused, or what psycopg raises; no message holds a password.
    """
    parameters = link(conninfo)
    for name in [name for name in os.environ if name.startswith("PG") and name != "PGPASSFILE"]:
        del os.environ[name]
    conn = _Patient.connect(
        **parameters,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        application_name="memoryvault",
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=STATEMENT_SECONDS * 1000,
    )
    try:
        # Not among the connection's options: those are the user's, and may name a schema.
        settings = (
            f"SET statement_timeout = '{STATEMENT_SECONDS}s';"
            f"SET idle_in_transaction_session_timeout = '{STALLED_SECONDS}s';"
            # The server's own defaults would keep a connection to a machine that is gone for two hours.
            "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
        )
        conn.execute(settings.encode())
    except BaseException:
        conn.close()
        raise
    return conn


def link(conninfo: str) -> dict[str, Any]:
    """The connection's parameters, those that protect it filled in. Raises LinkRefused."""
    try:
        parameters = conninfo_to_dict(conninfo)
    except psycopg.Error:
        raise LinkRefused(
            "queue.url is no address that PostgreSQL's client understands; one is postgresql://NAME@HOST/DATABASE, "
            "and signs in a password are written as in %20"
        ) from None  # The client's own words may quote the password.
    hosts = [each for name in ("host", "hostaddr") for each in str(parameters.get(name) or "").split(",") if each]
    if not hosts:
        raise LinkRefused("queue.url names no host; for a server on this machine write ?host=/var/run/postgresql")
    if all(_is_here(each) for each in hosts):
        return parameters
    mode = parameters.setdefault("sslmode", "verify-full")
    if mode in ("allow", "prefer"):
        raise LinkRefused(
            f"queue.url says sslmode={mode}, which may send everything unencrypted: leave it away (the server must "
            "then prove who it is), or write sslmode=disable if the network is yours alone"
        )
    if mode != "verify-full":
        # Whoever answers in the server's place is not to be told the password.
        parameters.setdefault("require_auth", "!password")
    return parameters


def _is_here(host: str) -> bool:
    """A UNIX socket's folder or a loopback address."""
    if host.startswith(("/", "@")) or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
