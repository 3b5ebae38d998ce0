"""Schema of the shared queue, in the PostgreSQL schema that the role's search_path names first.

Migrations run in order, all under one advisory lock, each in one transaction with its record in `migration`. The tables
are those of `..schema`; times are unix seconds (double precision) of the database's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection

from ...runtime.errors import SchemaTooNew
from . import rights

MIGRATION_LOCK = 0x4D565132
"""Of pg_advisory_xact_lock: workers of one version that start at once migrate one after the other."""

_FIRST = (
    """
    CREATE TABLE job (
        id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind        text NOT NULL,
        args        text NOT NULL,
        unique_key  text,
        priority    integer NOT NULL DEFAULT 0,
        state       text NOT NULL DEFAULT 'queued'
                    CHECK (state IN ('queued', 'running', 'done', 'dead', 'cancelled')),
        attempt     integer NOT NULL DEFAULT 0,
        run_at      double precision NOT NULL,
        lease_until double precision,
        owner       text,
        deadline    double precision,
        error       text,
        history     jsonb NOT NULL DEFAULT '[]',
        created_at  double precision NOT NULL,
        started_at  double precision,
        finished_at double precision,
        rung_at     double precision,
        place       text  -- the machine that alone may run it
    )
    """,
    "CREATE UNIQUE INDEX job_one_queued ON job (unique_key) WHERE state = 'queued'",
    "CREATE UNIQUE INDEX job_one_running ON job (unique_key) WHERE state = 'running'",
    "CREATE INDEX job_queued ON job (run_at) WHERE state = 'queued'",
    "CREATE INDEX job_unrung ON job (kind, run_at) WHERE state = 'queued' AND rung_at IS NULL",
    "CREATE INDEX job_running ON job (kind) WHERE state = 'running'",
    "CREATE INDEX job_dead ON job (finished_at) WHERE state = 'dead'",
    "CREATE TABLE kind_state (kind text PRIMARY KEY, paused_at double precision NOT NULL)",
    """
    CREATE TABLE worker_state (
        owner      text PRIMARY KEY,
        pid        integer NOT NULL,
        version    text NOT NULL,
        beat       bigint NOT NULL,
        beat_at    double precision NOT NULL,
        started_at double precision NOT NULL
    )
    """,
    # huey's own (huey.storage.PostgresStorage), with the job a doorbell rings for beside it.
    "CREATE TABLE huey_kv (queue text NOT NULL, key text NOT NULL, value bytea NOT NULL, PRIMARY KEY (queue, key))",
    """
    CREATE TABLE huey_schedule (
        id bigserial PRIMARY KEY, queue text NOT NULL, data bytea NOT NULL, timestamp double precision NOT NULL)
    """,
    "CREATE INDEX huey_schedule_queue_timestamp ON huey_schedule (queue, timestamp)",
    """
    CREATE TABLE huey_task (
        id bigserial PRIMARY KEY, queue text NOT NULL, data bytea NOT NULL,
        priority double precision NOT NULL DEFAULT 0.0, job_id bigint)
    """,
    "CREATE INDEX huey_task_queue_priority_id ON huey_task (queue, priority DESC, id)",
    "CREATE INDEX huey_task_job ON huey_task (job_id)",
    """
    CREATE TABLE huey_counter (
        queue text NOT NULL, key text NOT NULL, value bigint NOT NULL DEFAULT 0, PRIMARY KEY (queue, key))
    """,
)

_SECOND = (
    # What is to be judged elsewhere: words of old sessions, scrubbed, packed and compressed (tasks/sharing/packing.py).
    """
    CREATE TABLE content (
        key        text PRIMARY KEY,
        home       text NOT NULL,
        data       bytea NOT NULL,
        created_at double precision NOT NULL
    )
    """,
    # What came of it. It goes with its content: nobody waits for the outcome of what was withdrawn.
    """
    CREATE TABLE outcome (
        key        text PRIMARY KEY REFERENCES content (key) ON DELETE CASCADE,
        data       bytea NOT NULL,
        worker     text NOT NULL,
        created_at double precision NOT NULL
    )
    """,
    # Compressed already: the server need not try.
    "ALTER TABLE content ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE INDEX content_home ON content (home, created_at)",
    # Whoever waits for an outcome asks how its jobs ended.
    "CREATE INDEX job_key ON job (unique_key, id)",
)

# Of a machine that has a role of its own the others can neither read what came back for it nor take away what it has
# put there. What waits to be judged anybody may read: that is what it is there for; it goes with the first answer.
_THIRD = (
    "ALTER TABLE content ADD COLUMN put_by name NOT NULL DEFAULT current_user",
    "ALTER TABLE content ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY content_read ON content FOR SELECT USING (true)",
    "CREATE POLICY content_put ON content FOR INSERT WITH CHECK (put_by = current_user)",
    "CREATE POLICY content_answered ON content FOR UPDATE USING (true) WITH CHECK (octet_length(data) = 0)",
    """
    CREATE POLICY content_withdraw ON content FOR DELETE USING (
        put_by = current_user OR created_at < extract(epoch FROM clock_timestamp()) - 30 * 86400)
    """,
    "ALTER TABLE outcome ENABLE ROW LEVEL SECURITY",
    """
    CREATE POLICY outcome_read ON outcome FOR SELECT USING (
        EXISTS (SELECT 1 FROM content WHERE content.key = outcome.key AND content.put_by = current_user))
    """,
    "CREATE POLICY outcome_put ON outcome FOR INSERT WITH CHECK (true)",
    # What one machine writes another reads into its memory, before it can judge it. The limits are those of
    # tasks/sharing, which a test compares.
    "ALTER TABLE content ADD CHECK (octet_length(data) <= 2097152), ADD CHECK (length(key) <= 128)",
    "ALTER TABLE outcome ADD CHECK (octet_length(data) <= 4194304), ADD CHECK (length(worker) <= 128)",
    """
    ALTER TABLE job ADD CHECK (length(kind) <= 64), ADD CHECK (length(args) <= 65536),
        ADD CHECK (length(unique_key) <= 512), ADD CHECK (length(error) <= 2000),
        ADD CHECK (pg_column_size(history) <= 1048576)
    """,
    "ALTER TABLE huey_task ADD CHECK (octet_length(data) <= 1024)",
    "ALTER TABLE worker_state ADD CHECK (length(owner) <= 256), ADD CHECK (length(version) <= 64)",
)

MIGRATIONS: tuple[Sequence[str], ...] = (_FIRST, _SECOND, _THIRD)
"""`MIGRATIONS[n]` leads from version n to n + 1."""

VERSION = len(MIGRATIONS)


def version(conn: Connection[Any]) -> int:
    """What was migrated to; 0 for a database that has nothing of ours."""
    # Not to_regclass(): what another session has just committed is not in the cache that it asks.
    row = conn.execute("""
        SELECT EXISTS (SELECT 1 FROM pg_class
                       WHERE relname = 'migration' AND relkind = 'r' AND pg_table_is_visible(oid))
    """).fetchone()
    if row is None or not row[0]:
        return 0
    row = conn.execute("SELECT coalesce(max(version), 0) FROM migration").fetchone()
    return int(row[0]) if row else 0


def check(found: int, known: int = VERSION) -> None:
    """Raise SchemaTooNew if a newer package wrote it."""
    if found > known:
        raise SchemaTooNew(f"the shared queue has schema {found}, this MemoryVault knows up to {known}: update it")


def may_migrate(conn: Connection[Any]) -> bool:
    """Whether the role may make tables here and owns those that are there."""
    row = conn.execute("""
        SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)
               AND NOT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('migration')
                               AND NOT pg_has_role(relowner, 'USAGE'))
    """).fetchone()
    return bool(row and row[0])


def set_up(conn: Connection[Any]) -> tuple[list[int], bool]:
    """What the owner does: migrate, and make the workers' role with its rights. The versions reached, and whether there
    is that role. Raises SchemaTooNew."""
    with conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        has_role = rights.create_role(conn)
        reached = migrate(conn)
        if has_role:
            rights.grant(conn)
    return reached, has_role


def migrate(conn: Connection[Any], migrations: Sequence[Sequence[str]] = MIGRATIONS) -> list[int]:
    """Apply what is missing; the versions reached. Raises SchemaTooNew if a newer package wrote it."""
    reached: list[int] = []
    with conn.transaction():
        conn.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        conn.execute("""
            CREATE TABLE IF NOT EXISTS migration (version integer PRIMARY KEY, applied_at double precision NOT NULL)
        """)
        found = version(conn)
        check(found, len(migrations))
        for number in range(found, len(migrations)):
            for statement in migrations[number]:
                conn.execute(statement.encode())
            conn.execute("INSERT INTO migration VALUES (%s, extract(epoch FROM clock_timestamp()))", (number + 1,))
            reached.append(number + 1)
        if reached and rights.role_exists(conn):
            rights.grant(conn)
    return reached
