"""The role that machines work in: what it may do to each table, and nothing else.

Each machine logs in by a role of its own that is a member of it. Then the server knows them apart: rows that are for
one machine alone (schema.py has the policies) are hidden from the others, and a stolen one is locked out alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors, sql

ROLE = "memoryvault_worker"

GRANTS: Mapping[str, str] = {
    "migration": "SELECT",
    # What a job is cannot be changed, only how it stands.
    "job": """SELECT, INSERT, DELETE, UPDATE (state, attempt, run_at, lease_until, owner, deadline, error, history,
              created_at, started_at, finished_at, rung_at)""",
    "kind_state": "SELECT",
    "worker_state": "SELECT, INSERT, UPDATE, DELETE",
    "huey_task": "SELECT, INSERT, DELETE, UPDATE (priority)",  # UPDATE: it locks the row it takes.
    "content": "SELECT, INSERT, DELETE, UPDATE (data)",
    "outcome": "SELECT, INSERT",
}
SEQUENCES = ("huey_task_id_seq",)


@dataclass(frozen=True)
class Rights:
    """What the role of a connection may do here."""

    role: str
    works: bool
    """It has every right that a worker needs."""
    owns: bool
    """It may change the tables."""
    superuser: bool


def role_exists(conn: Connection[Any]) -> bool:
    """Whether there is the role of the workers."""
    return conn.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is not None


def create_role(conn: Connection[Any]) -> bool:
    """Make it, unless it is there; False if this role may not. It cannot log in: machines' roles are its members."""
    if role_exists(conn):
        return True
    try:
        with conn.transaction():
            conn.execute(f"CREATE ROLE {ROLE} NOLOGIN".encode())
    except errors.InsufficientPrivilege:
        return False
    return True


def grant(conn: Connection[Any]) -> None:
    """Give that role what it needs, and take everything else from it."""
    role = sql.Identifier(ROLE)
    row = conn.execute("SELECT current_schema()").fetchone()
    here = sql.Identifier(str(row[0]) if row else "public")
    every = sql.SQL("ALL TABLES IN SCHEMA {}").format(here)
    conn.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(every, role))
    conn.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(here, role))
    for table, what in GRANTS.items():
        statement = sql.SQL("GRANT {} ON {} TO {}")
        conn.execute(statement.format(sql.SQL(what), sql.Identifier(table), role))
    for sequence in SEQUENCES:
        conn.execute(sql.SQL("GRANT USAGE ON SEQUENCE {} TO {}").format(sql.Identifier(sequence), role))


def rights_of(conn: Connection[Any]) -> Rights:
    """Of the connection's own role; the tables are there."""
    row = conn.execute("""
        SELECT current_user::text, rolsuper,
               (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'job'::regclass),
               has_any_column_privilege('job', 'UPDATE') AND has_table_privilege('huey_task', 'DELETE')
               AND has_table_privilege('content', 'SELECT') AND has_table_privilege('outcome', 'INSERT')
        FROM pg_roles WHERE rolname = current_user
    """).fetchone()
    assert row is not None
    role, superuser, owns, works = row
    return Rights(role, bool(works), bool(owns), bool(superuser))
