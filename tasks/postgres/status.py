"""How the shared queue stands, asked of the database: for `memory jobs queue` and `memory doctor`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psycopg

from ...runtime.errors import QueueUnavailable
from . import rights, schema
from .connection import Address, Impatient

LIVE = ("queued", "running", "dead")
SILENT_SECONDS = 90.0
"""A worker without a beat for so long is told as silent."""


@dataclass(frozen=True)
class WorkerSeen:
    """One worker of the shared queue."""

    machine: str
    version: str
    silent_seconds: float

    @property
    def is_silent(self) -> bool:
        return self.silent_seconds > SILENT_SECONDS


@dataclass(frozen=True)
class QueueStatus:
    """What is there; all but the connection's own facts is empty while the tables are not of this version."""

    where: str
    role: str
    encrypted: bool
    pooled: bool
    """A pooler is between; `encrypted` is then said of the way to it."""
    milliseconds: float
    """Of one question and its answer."""
    server: str
    schema: int
    schema_needed: int
    rights: rights.Rights | None = None
    jobs: tuple[tuple[str, str, int], ...] = ()
    """Kind, state, how many."""
    workers: tuple[WorkerSeen, ...] = ()
    addressed: int = 0
    """Results that wait for this machine."""
    away: int = 0
    """Contents of this machine that lie there."""
    away_bytes: int = 0


def status_of(url: str, machine: str) -> QueueStatus:
    """Ask it, in a connection of its own. Raises QueueUnavailable, in one line without the password."""
    address = Address(url)
    try:
        with address.connect(machine) as conn:
            return _status(conn, address, machine)
    except psycopg.Error as error:
        raise QueueUnavailable(f"the shared queue cannot be reached: {address.said(error)}") from None


def _status(conn: Impatient, address: Address, machine: str) -> QueueStatus:
    began = time.monotonic()
    role, server = _row(conn, "SELECT current_user::text, current_setting('server_version')")
    status = QueueStatus(
        where=address.where,
        role=role,
        encrypted=bool(conn.pgconn.ssl_in_use),
        pooled=conn.pooled,
        milliseconds=(time.monotonic() - began) * 1000.0,
        server=str(server).split()[0],
        schema=schema.version(conn),
        schema_needed=schema.VERSION,
    )
    if status.schema != status.schema_needed:
        return status
    own = rights.rights_of(conn)
    if not own.works:
        return QueueStatus(**{**status.__dict__, "rights": own})
    jobs = conn.execute("""
        SELECT kind, state, count(*) FROM job WHERE state = ANY (%s) GROUP BY kind, state ORDER BY kind, state
    """, (list(LIVE),)).fetchall()  # fmt: skip
    workers = conn.execute("""
        SELECT split_part(owner, ':', 1), version, extract(epoch FROM clock_timestamp()) - beat_at
        FROM worker_state ORDER BY beat_at DESC LIMIT 100
    """).fetchall()
    (addressed,) = _row(conn, "SELECT count(*) FROM job WHERE place = %s AND state IN ('queued', 'running')", machine)
    away, size = _row(
        conn, "SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM content WHERE home = %s", machine
    )
    return QueueStatus(
        **{
            **status.__dict__,
            "rights": own,
            "jobs": tuple((kind, state, int(count)) for kind, state, count in jobs),
            "workers": tuple(WorkerSeen(name, version, float(silent)) for name, version, silent in workers),
            "addressed": int(addressed),
            "away": int(away),
            "away_bytes": int(size),
        }
    )


def _row(conn: psycopg.Connection[Any], statement: str, *parameters: object) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = conn.execute(statement.encode(), parameters).fetchone()
    assert row is not None
    return row


@dataclass(frozen=True)
class SetUp:
    """What `migrate` did."""

    where: str
    role: str
    reached: tuple[int, ...]
    """Versions of the schema that were applied now."""
    version: int
    has_worker_role: bool
    """False if this role may not make one."""


def set_up(url: str, *, user: str | None = None, password: str | None = None) -> SetUp:
    """Make the tables, and the workers' role with its rights, or bring them up to date.

    `user` logs in in the place of the address's own. Raises QueueUnavailable, SchemaTooNew; PasswordWanted if the
    server asks for a password that nothing names.
    """
    address = Address(url, user=user, password=password)
    try:
        with address.connect("migrates", statement_seconds=0.0) as conn:
            (role,) = _row(conn, "SELECT current_user::text")
            if not schema.may_migrate(conn):
                raise QueueUnavailable(
                    f"the role {role} may not make tables there: `memory jobs queue migrate --as OWNER`"
                )
            reached, has_role = schema.set_up(conn)
            return SetUp(address.where, role, tuple(reached), schema.version(conn), has_role)
    except psycopg.OperationalError as error:
        if password is None and "password" in str(error):
            raise PasswordWanted from None
        raise QueueUnavailable(f"the shared queue cannot be reached: {address.said(error)}") from None
    except psycopg.Error as error:
        raise QueueUnavailable(f"the shared queue cannot be set up: {address.said(error)}") from None


class PasswordWanted(Exception):
    """The server wants a password; neither the address nor a password file has one."""
