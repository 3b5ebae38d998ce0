"""queue.db is created once by concurrent processes, and never written by a version that does not know its schema."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from memoryvault.runtime.errors import SchemaTooNew
from memoryvault.tasks.queue import schema
from memoryvault.tasks.queue.damage import open_queue
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.tasks.support import state_in

OPEN = "import sys; from memoryvault.tasks.queue.ledger import Ledger; Ledger(sys.argv[1]).enqueue('embed.drain')"


def opened(path: Path) -> sqlite3.Connection:
    """queue.db as a library user would open it."""
    return schema.connect(path, busy_seconds=5, create=True)


def test_the_file_is_private(tmp_path: Path) -> None:
    conn = opened(tmp_path / "queue.db")
    assert (tmp_path / "queue.db").stat().st_mode & 0o777 == 0o600
    assert schema.version_of(conn) == schema.VERSION
    assert conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    conn.close()


def test_a_newer_schema_is_refused_in_one_line_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    opened(path).close()
    with sqlite3.connect(path) as conn:
        conn.execute("PRAGMA user_version = 99")
    conn.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew) as refusal:
        Ledger(path)
    assert "schema 99" in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == before


def test_a_file_of_an_older_version_is_set_aside_by_the_worker(tmp_path: Path) -> None:
    state = state_in(tmp_path)
    opened(Path(state.queue_db)).close()
    with sqlite3.connect(state.queue_db) as conn:
        conn.execute("PRAGMA user_version = 1")
    conn.close()
    with pytest.raises(schema.QueueDamaged, match="written by an older version"):
        Ledger(state.queue_db)
    found = open_queue(state, busy_seconds=5.0)
    found.ledger.close()
    assert found.rebuilt
    assert "written by an older version" in str(found.note)


def test_a_creation_killed_half_way_is_done_by_the_next_who_opens(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    env = {**os.environ, "MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": "create-tables"}
    killed = subprocess.run([sys.executable, "-c", OPEN, path], env=env, cwd="/", check=False)
    assert killed.returncode == -9
    with Ledger(path) as ledger:
        assert ledger.list_jobs() == []
        ledger.enqueue("embed.drain")


def test_four_processes_may_make_it_at_once(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", OPEN, tmp_path / "queue.db"], cwd="/") for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0, 0]
    with Ledger(tmp_path / "queue.db") as ledger:
        assert len(ledger.list_jobs()) == 4


def test_an_armed_kill_point_needs_the_test_mode(tmp_path: Path) -> None:
    env = {**os.environ, "MEMORY_TEST_KILL_POINT": "create-tables"}
    env.pop("MEMORY_TEST_MODE", None)
    subprocess.run([sys.executable, "-c", OPEN, tmp_path / "queue.db"], env=env, cwd="/", check=True)


# The bytes on which SQLite holds its shared lock while a connection in WAL mode is open.
HELD = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)"


def test_a_second_connection_of_a_process_does_not_take_the_firsts_locks_away(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"

    def is_locked() -> bool:
        return subprocess.run([sys.executable, "-c", HELD, str(path)], capture_output=True, check=False).returncode != 0

    with Ledger(path) as ledger:
        ledger.list_jobs()
        assert is_locked()
        Ledger(path).close()
        assert is_locked()
    assert not is_locked()
