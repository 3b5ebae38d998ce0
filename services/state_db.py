"""state.db: spending, and the cursors of scans.

None of it can be derived again, so every commit is synced, and `logs.rotate` keeps a daily copy. Each use opens its own
connection: there are a few writes an hour, from workers, their children and commands.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ..runtime.errors import QueueUnavailable, SchemaTooNew
from ..runtime.paths import explain_file_system
from ..tasks.queue.damage import restore_if_damaged, sole_use
from ..tasks.queue.schema import (
    DATABASE_ERRORS,
    Shape,
    is_damage,
    is_doubtful,
    is_of_file_system,
    retry_locked,
    unavailable,
)

log = logging.getLogger(__name__)

VERSION = 1
BUSY_SECONDS = 10.0

_TABLES = (
    """
    CREATE TABLE spending (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        purpose  TEXT NOT NULL,     -- what the budget is for: 'mining', 'research', 'adaptation'
        subject  TEXT NOT NULL,     -- session id, slug or pattern
        unit     TEXT NOT NULL,     -- 'tokens', 'fetches', 'seconds'
        reserved INTEGER NOT NULL,  -- written before it is spent
        spent    INTEGER,           -- null until settled: a crash in between counts as all of it
        day      TEXT NOT NULL,     -- local date, YYYY-MM-DD
        at       REAL NOT NULL      -- unix seconds
    )
    """,
    "CREATE INDEX spending_by_subject ON spending(purpose, unit, subject)",
    "CREATE INDEX spending_by_day ON spending(purpose, unit, day)",
    """
    CREATE TABLE cursor (           -- how far a scan has come in one of its sources
        scan       TEXT NOT NULL,   -- 'corpus', 'discovery', 'skills'
        source     TEXT NOT NULL,
        value      TEXT NOT NULL,   -- JSON, the scan's own
        updated_at REAL NOT NULL,
        PRIMARY KEY (scan, source)
    )
    """,
)

SHAPE = Shape(_TABLES, VERSION, [("cursor", "value")])


@contextmanager
def state_transaction(path: Path | str) -> Iterator[sqlite3.Connection]:
    """Open one durable write transaction on state.db, created as needed.

    Raises QueueUnavailable if it is damaged or others use it for longer than LOCK_SECONDS (damage.py), SchemaTooNew if
    a newer version has written it. Rolled back if the block raises. A damaged file is replaced by its daily copy for
    the next caller.
    """
    path = Path(path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with sole_use(path), closing(_connect(path)) as conn:
            conn.row_factory = sqlite3.Row
            retry_locked(lambda: conn.execute("PRAGMA journal_mode = wal"), BUSY_SECONDS)
            conn.execute("PRAGMA synchronous = full")
            conn.execute("BEGIN IMMEDIATE")
            _create_tables(conn, path)
            yield conn
            conn.execute("COMMIT")  # After an error the closing rolls back.
    except (*DATABASE_ERRORS, OSError) as error:
        raise _unavailable(path, error) from error


def _connect(path: Path) -> sqlite3.Connection:
    if not path.exists():
        path.touch(mode=0o600)
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)


def _unavailable(path: Path, error: Exception) -> QueueUnavailable:
    """Return the error in our words, and replace a damaged file now, because a worker may run for weeks."""
    if is_damage(error) or is_doubtful(error):
        with suppress(OSError):
            if done := restore_if_damaged(path, SHAPE):
                log.info("%s", done)  # The caller tells the user.
                return QueueUnavailable(f"{done}: try again")
    if is_of_file_system(error):
        return QueueUnavailable(explain_file_system(path, error))
    return QueueUnavailable(f"{path} cannot be used ({error}); `memory doctor` says what to do")


def _create_tables(conn: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file. Raises SchemaTooNew."""
    version = int(conn.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise SchemaTooNew(f"{path} was written by a newer MemoryVault: update this one")
    if version == 0:
        for statement in _TABLES:
            conn.execute(statement)
        conn.execute(f"PRAGMA user_version = {VERSION:d}")


def replace_texts(path: Path | str, clean: Callable[[str], str], *, apply: bool) -> list[str]:
    """Return the names of rows with a text that `clean` changes; with `apply`, change them and overwrite the old bytes.

    A cursor with a changed source or value is not found again, so its scan starts over. Raises QueueUnavailable.
    """
    changed = []
    with state_transaction(path) as conn:
        conn.execute("PRAGMA secure_delete = ON")
        for table, columns in (("cursor", ("source", "value")), ("spending", ("subject",))):
            for row in conn.execute(f"SELECT rowid AS row_id, * FROM {table}").fetchall():
                new = [clean(row[column]) for column in columns]
                if new == [row[column] for column in columns]:
                    continue
                changed.append(f"{table} {row['row_id']}")
                if apply:
                    assignments = ", ".join(f"{column} = ?" for column in columns)
                    conn.execute(f"UPDATE OR REPLACE {table} SET {assignments} WHERE rowid = ?", (*new, row["row_id"]))
    return changed


def checkpoint(path: Path | str) -> bool:
    """Empty the write-ahead log of state.db or queue.db, which holds old pages; return False if another process is
    reading them. Raises QueueUnavailable."""
    path = Path(path)
    try:
        with sole_use(path), closing(_connect(path)) as conn:
            return not conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except (*DATABASE_ERRORS, OSError) as error:
        raise unavailable(path, error) from error  # Not replaced here: only its worker replaces a queue.
