"""Schema of queue.db: the job ledger, schedules and the worker's beat.

All tables are created in one transaction together with `PRAGMA user_version`. A file of an older version is set aside
and filled again from the spool and the session markers, like a damaged one.

Times are unix seconds (REAL).
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path

from ...runtime.errors import QueueUnavailable, SchemaTooNew
from ...runtime.killpoint import kill_point
from ...runtime.paths import explain_file_system

AGING_SECONDS = 60.0
"""How long a wait one point of priority is worth. A job of priority p overtakes one of priority q only if that has
waited less than (p - q) * AGING_SECONDS longer, so endless urgent work cannot starve the rest."""
ORDER = f"run_at - priority * {AGING_SECONDS}"
"""What due jobs are claimed by, smallest first. It is fixed for each job, so nothing is rewritten for jobs to age."""

TABLES = (
    """
    CREATE TABLE job (
        id          INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused
        kind        TEXT NOT NULL,                       -- one of kinds.POLICIES
        args        TEXT NOT NULL,                       -- JSON object of ids and paths, never content
        unique_key  TEXT,                                -- at most one queued and one running job per key
        priority    INTEGER NOT NULL DEFAULT 0,          -- higher first; see AGING_SECONDS
        state       TEXT NOT NULL DEFAULT 'queued'
                    CHECK (state IN ('queued', 'running', 'done', 'dead', 'cancelled')),
        attempt     INTEGER NOT NULL DEFAULT 0,          -- claims that count; a crash counts
        run_at      REAL NOT NULL,                       -- not to be claimed before
        lease_until REAL,                                -- running: the owner must beat before
        owner       TEXT,                                -- running: pid:nonce of this claim
        error       TEXT,                                -- of the last attempt, one line
        history     TEXT NOT NULL DEFAULT '[]',          -- JSON list, one object per ended attempt
        created_at  REAL NOT NULL,
        started_at  REAL,                                -- of the last attempt
        finished_at REAL                                 -- when it became done, dead or cancelled
    )
    """,
    # Also makes it a no-op to enqueue a job that is already queued.
    "CREATE UNIQUE INDEX job_one_queued ON job(unique_key) WHERE state = 'queued' AND unique_key IS NOT NULL",
    # Partial indexes hold only live rows: finished jobs do not slow a claim.
    "CREATE UNIQUE INDEX job_one_running ON job(unique_key) WHERE state = 'running' AND unique_key IS NOT NULL",
    "CREATE INDEX job_queued ON job(run_at) WHERE state = 'queued'",
    f"CREATE INDEX job_order ON job({ORDER}, id) WHERE state = 'queued'",
    "CREATE INDEX job_running ON job(kind) WHERE state = 'running'",
    "CREATE INDEX job_dead ON job(finished_at) WHERE state = 'dead'",
    """
    CREATE TABLE schedule_state (
        name      TEXT PRIMARY KEY,      -- Schedule.name
        last_slot REAL NOT NULL          -- newest slot that was enqueued or passed over
    )
    """,
    "CREATE TABLE kind_state (kind TEXT PRIMARY KEY, paused_at REAL NOT NULL)",
    """
    CREATE TABLE worker_state (
        id         INTEGER PRIMARY KEY CHECK (id = 1),   -- one worker per state folder
        pid        INTEGER NOT NULL,
        beat       INTEGER NOT NULL,                     -- counts up while the worker lives
        beat_at    REAL NOT NULL
    )
    """,
)
VERSION = 3


class QueueDamaged(QueueUnavailable):
    """queue.db is not a database, or broken; the worker sets it aside and creates a new one."""


DATABASE_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError)
"""Errors that the file itself may cause; UnicodeDecodeError also comes from SQLite's own messages."""


def is_damage(error: BaseException | None) -> bool:
    """Whether the file itself is broken, rather than busy, full or unreachable."""
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
        return True
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Raised by the module itself, for a text that it cannot decode.
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_doubtful(error: BaseException) -> bool:
    """Whether the error means a broken file or a bug of ours: a missing table, column or index."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT)


class Shape:
    """The tables and columns a database must have, in addition to what SQLite checks."""

    def __init__(self, statements: Sequence[str], version: int, json_columns: Sequence[tuple[str, str]]) -> None:
        self._statements = statements
        self._version = version
        self._json_columns = json_columns
        """(table, column) of the columns that hold JSON."""

    @cached_property
    def _expected(self) -> frozenset[tuple[str, str]]:
        with closing(sqlite3.connect(":memory:")) as conn:
            for statement in self._statements:
                conn.execute(statement)
            return _objects(conn)

    @cached_property
    def _wrong_values(self) -> dict[str, str]:
        """By table a condition for the rows of which a value has not the type of its column, which SQLite allows."""
        with closing(sqlite3.connect(":memory:")) as conn:
            for statement in self._statements:
                conn.execute(statement)
            columns = conn.execute(
                "SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'"
            ).fetchall()
        wrong: dict[str, list[str]] = {}
        for table, column, declared in columns:
            if declared in _STORED_AS:
                wrong.setdefault(table, []).append(f"typeof({column}) NOT IN ('null', '{_STORED_AS[declared]}')")
        return {table: " OR ".join(conditions) for table, conditions in wrong.items()}

    def find_difference(self, conn: sqlite3.Connection) -> str | None:
        """Return the difference in words; None if there is none, or if a newer version made the file."""
        version, objects = version_of(conn), _objects(conn)
        if (version == 0 and objects) or not 0 <= version <= _LARGEST_VERSION:
            return "its version is lost"
        if version == 0 or version > self._version:
            return None
        if version < self._version:
            return OLDER
        if missing := self._expected - objects:
            return f"{min(missing)[0]} is missing or changed"
        for table, wrong in self._wrong_values.items():
            if conn.execute(f'SELECT 1 FROM "{table}" WHERE {wrong}').fetchone():
                return f"{table} holds a value of another type"
        for table, column in self._json_columns:
            if conn.execute(f"SELECT 1 FROM {table} WHERE NOT json_valid({column})").fetchone():
                return f"{table}.{column} holds what is no JSON"
        return None


_STORED_AS = {"INTEGER": "integer", "REAL": "real", "TEXT": "text"}
"""What `typeof` says of a value, by the type of its column."""
OLDER = "it was written by an older version"
_LARGEST_VERSION = 999


def _objects(conn: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    found = conn.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'")
    return frozenset((name, " ".join(re.sub("--.*", "", sql).split())) for name, sql in found)


_NEWEST_JOB = "SELECT * FROM job ORDER BY id DESC LIMIT 1"

SHAPE = Shape(TABLES, VERSION, [("job", "history")])


COPY_BUSY_SECONDS = 5.0


def find_damage(path: Path, shape: Shape | None = None) -> str | None:
    """Return the damage of a file in words; None if there is none, or if it cannot be checked now.

    SQLite's own check does not decode texts, so every row is read here and compared with `shape`.
    """
    try:
        if path.stat().st_size == 0:
            return None
        with closing(open_readonly(path)) as conn:
            found = conn.execute("PRAGMA integrity_check").fetchone()[0]
            if found != "ok":
                return " ".join(str(found).split())
            for (table,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                for _ in conn.execute(f'SELECT * FROM "{table}"'):
                    pass
            return None if shape is None else shape.find_difference(conn)
    except DATABASE_ERRORS as error:
        return str(error) if is_damage(error) or is_doubtful(error) else None
    except OSError:
        return None


def is_readable_anew(path: Path) -> bool:
    """Whether a new connection can read the file now; False only if SQLite says that it is broken.

    A connection that has been open for long reads from its own cache and can work for hours in a file that nobody else
    can use. This opens it anew and reads its schema and the newest job, in about a millisecond.
    """
    try:
        with closing(open_readonly(path)) as conn:
            if version_of(conn):  # Otherwise its tables have not been created yet.
                conn.execute(_NEWEST_JOB).fetchone()
    except DATABASE_ERRORS as error:
        return not is_damage(error)
    return True


def open_readonly(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing and creates no file. Raises sqlite3.Error."""
    # Not mode=ro: SQLite does not load CHECK constraints then, and so does not check them.
    conn = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=COPY_BUSY_SECONDS)
    conn.execute("PRAGMA query_only = on")
    return conn


def is_of_file_system(error: BaseException) -> bool:
    """Whether the file system failed or lacks something that SQLite needs."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL)


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds the lock."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def damaged(path: Path, error: Exception | str) -> QueueDamaged:
    """Return the error for a broken file."""
    return QueueDamaged(
        f"{path} is damaged ({error}): `memory service worker` sets it aside and rebuilds it at its start"
    )


def unavailable(path: Path, error: Exception) -> QueueUnavailable:
    """Return the error for a failing database: the problem, and what will happen or has to be done."""
    if is_damage(error):
        return damaged(path, error)
    if "locked" in str(error):
        return QueueUnavailable(f"{path} is locked by another program; nothing was written, try again")
    if is_of_file_system(error):
        return QueueUnavailable(explain_file_system(path, error))
    return QueueUnavailable(f"cannot use {path}: {error}")


def connect(path: Path, *, busy_seconds: float, create: bool) -> sqlite3.Connection:
    """Open queue.db in WAL mode, and create its tables if it is new.

    Without `create`, a missing file raises QueueUnavailable. Raises SchemaTooNew if a newer package wrote it,
    QueueUnavailable if it is locked for longer than `busy_seconds` or unreadable, QueueDamaged if it is broken or of an
    older version.
    """
    try:
        if create:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Never open an existing file: closing it would drop the locks that SQLite holds for this process's other
            # connections (POSIX locks belong to the process), and another process would then remove the write-ahead
            # log.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        elif not path.exists():
            raise QueueUnavailable(f"{path} does not exist yet: start `memory service worker` once to create it")
        conn = sqlite3.connect(path, timeout=busy_seconds, check_same_thread=False, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise unavailable(path, error) from error
    try:
        _require_version(conn, path)
        retry_locked(lambda: conn.execute("PRAGMA journal_mode = wal"), busy_seconds)
        _create_tables(conn)
        _require_version(conn, path)
        conn.execute("PRAGMA busy_timeout = 0")  # Ledger waits by itself, more fairly.
    except DATABASE_ERRORS as error:
        conn.close()
        raise unavailable(path, error) from error
    except BaseException:
        conn.close()
        raise
    return conn


def version_of(conn: sqlite3.Connection) -> int:
    """Return the file's schema version."""
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


def _create_tables(conn: sqlite3.Connection) -> None:
    """Create the tables of a new file. Safe when several processes call it at once. The caller closes the connection
    after an error, which rolls back."""
    if version_of(conn):
        return
    conn.execute("BEGIN IMMEDIATE")
    if not version_of(conn):  # Another process may have created them while this one waited for the lock.
        for statement in TABLES:
            conn.execute(statement)
        kill_point("create-tables")
        conn.execute(f"PRAGMA user_version = {VERSION:d}")
    conn.execute("COMMIT")


def _require_version(conn: sqlite3.Connection, path: Path) -> None:
    found = version_of(conn)
    if found > VERSION:
        raise SchemaTooNew(
            f"{path} has schema {found}, this MemoryVault knows up to {VERSION}: "
            "update it and restart what is still running"
        )
    if 0 < found < VERSION:
        raise damaged(path, OLDER)


def retry_locked(action: Callable[[], object], seconds: float) -> None:
    """Retry `action` while another connection holds the lock. Raises sqlite3.OperationalError."""
    # Switching a new file to WAL upgrades a read lock, which SQLite refuses at once instead of waiting.
    until = time.monotonic() + seconds
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)
