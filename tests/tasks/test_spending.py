"""Budgets hold through crashes, retries and concurrent processes."""

import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from memoryvault.runtime.errors import QueueUnavailable, SchemaTooNew
from memoryvault.services.cursors import Cursors
from memoryvault.services.spending import BudgetRefused, Cap, SpendingBook, spent_since
from memoryvault.services.state_db import checkpoint, state_transaction
from memoryvault.tasks.queue import damage
from memoryvault.tasks.queue.damage import back_up, restore_if_damaged, sole_use

PER_SESSION = Cap("tokens", 1000, "subject")
PER_DAY = Cap("tokens", 2500, "day")
CAPS = (PER_SESSION, PER_DAY)
SIDE_FILES = ("-wal", "-shm")


@pytest.fixture
def state_db(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.db"


def test_amounts_are_reserved_completely_or_refused(state_db: Path) -> None:
    book = SpendingBook(state_db, "mining")
    book.reserve("s1", {"tokens": 700}, CAPS)
    with pytest.raises(BudgetRefused, match="1000 tokens per subject allowed, 700 used, 400 more wanted"):
        book.reserve("s1", {"tokens": 400, "fetches": 1}, CAPS)
    assert book.left("s1", PER_SESSION) == 300
    book.reserve("s1", {"tokens": 300}, CAPS)


def test_the_cap_of_the_day_counts_every_subject(state_db: Path) -> None:
    book = SpendingBook(state_db, "mining")
    for session in ("s1", "s2"):
        book.reserve(session, {"tokens": 1000}, CAPS)
    with pytest.raises(BudgetRefused, match="per day"):
        book.reserve("s3", {"tokens": 501}, CAPS)
    book.reserve("s3", {"tokens": 500}, CAPS)


def test_a_new_day_has_a_new_budget_but_a_subject_has_not(state_db: Path) -> None:
    now = 1_700_000_000.0
    book = SpendingBook(state_db, "mining", clock=lambda: now)
    book.reserve("s1", {"tokens": 1000}, CAPS)
    now += 2 * 86_400
    with pytest.raises(BudgetRefused, match="per subject"):
        book.reserve("s1", {"tokens": 1}, CAPS)
    assert book.left("s1", PER_DAY) == 2500


def test_settling_gives_back_what_was_not_spent(state_db: Path) -> None:
    book = SpendingBook(state_db, "research")
    reservation = book.reserve("idea", {"tokens": 1000, "fetches": 3})
    book.settle(reservation, {"tokens": 120})
    assert book.left("idea", PER_SESSION) == 880
    assert book.left("idea", Cap("fetches", 3, "subject")) == 3


def test_a_process_killed_between_reserving_and_settling_has_spent_it_all(state_db: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from memoryvault.services.spending import SpendingBook\n"
        "SpendingBook(sys.argv[1], 'mining').reserve('s1', {'tokens': 900})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(state_db)], check=False)
    assert ended.returncode == -9
    assert SpendingBook(state_db, "mining").left("s1", PER_SESSION) == 100


def test_purposes_do_not_share_a_budget(state_db: Path) -> None:
    SpendingBook(state_db, "mining").reserve("x", {"tokens": 1000}, CAPS)
    assert SpendingBook(state_db, "research").left("x", PER_SESSION) == 1000


def test_spenders_at_once_never_get_more_than_the_cap(state_db: Path) -> None:
    book = SpendingBook(state_db, "mining")

    def spend(_: int) -> int:
        try:
            book.reserve("s1", {"tokens": 300}, CAPS)
        except BudgetRefused:
            return 0
        return 300

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(16))) == 900


def test_sums_tell_what_was_spent_or_may_have_been(state_db: Path) -> None:
    assert spent_since(state_db, "2000-01-01") == ()
    assert not state_db.exists()
    book = SpendingBook(state_db, "mining")
    book.settle(book.reserve("s1", {"tokens": 800}, CAPS), {"tokens": 500})
    book.reserve("s1", {"tokens": 40}, CAPS)
    (row,) = spent_since(state_db, "2000-01-01")
    assert (row.purpose, row.unit, row.spent) == ("mining", "tokens", 540)
    assert spent_since(state_db, "9999-01-01") == ()


def test_cursors_are_kept_by_scan_and_source(state_db: Path) -> None:
    corpus = Cursors(state_db, "corpus")
    assert corpus.get("a") is None
    corpus.set("a", {"offset": 7})
    corpus.set("a", {"offset": 9})
    Cursors(state_db, "discovery").set("a", {"etag": "é"})
    assert corpus.all() == {"a": {"offset": 9}}
    corpus.forget("a")
    assert corpus.all() == {}


def test_a_newer_file_is_refused_in_one_line(state_db: Path) -> None:
    Cursors(state_db, "corpus").set("a", {})
    with closing(sqlite3.connect(state_db)) as conn:
        conn.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew, match="newer MemoryVault"):
        Cursors(state_db, "corpus").get("a")


def test_a_damaged_file_is_told_in_one_line_and_its_copy_takes_its_place(state_db: Path) -> None:
    Cursors(state_db, "corpus").set("a", {"offset": 7})
    assert back_up(state_db)
    state_db.write_bytes(b"no database at all" * 500)
    with pytest.raises(QueueUnavailable, match=r"state\.db was damaged .* took its place.*try again") as told:
        Cursors(state_db, "corpus").get("a")
    assert "\n" not in str(told.value)
    assert Cursors(state_db, "corpus").get("a") == {"offset": 7}
    (kept,) = state_db.parent.glob("state.db.damaged-*Z")
    assert kept.read_bytes().startswith(b"no database at all")


def test_a_damaged_file_that_many_find_at_once_is_replaced_once(state_db: Path) -> None:
    Cursors(state_db, "corpus").set("a", {"offset": 7})
    assert back_up(state_db)
    state_db.write_bytes(b"no database at all" * 500)

    def look(_: int) -> bool:
        with suppress(QueueUnavailable):
            return Cursors(state_db, "corpus").get("a") == {"offset": 7}
        return False

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(look, range(8)))
    assert look(0)
    assert len([name for name in state_db.parent.glob("state.db.damaged-*") if name.suffix[-4:] not in SIDE_FILES]) == 1


def test_a_damaged_file_is_not_replaced_while_another_has_it_open(state_db: Path) -> None:
    """It would go on writing its log, which SQLite knows by the file's name, into the new file's."""
    Cursors(state_db, "corpus").set("a", {"offset": 7})
    assert back_up(state_db)
    with ThreadPoolExecutor(1) as pool:
        with state_transaction(state_db):
            state_db.write_bytes(b"no database at all" * 500)
            replaced = pool.submit(restore_if_damaged, state_db)
            with pytest.raises(TimeoutError):
                replaced.result(timeout=0.5)
            assert state_db.read_bytes().startswith(b"no database at all")
        assert replaced.result(timeout=20)
    assert Cursors(state_db, "corpus").get("a") == {"offset": 7}


def test_a_file_that_was_set_aside_while_another_waited_is_made_for_this_user_alone(state_db: Path) -> None:
    Cursors(state_db, "corpus").set("a", {"offset": 7})
    with ThreadPoolExecutor(1) as pool:
        with sole_use(state_db):
            writing = pool.submit(Cursors(state_db, "corpus").set, "a", {"offset": 8})
            with pytest.raises(TimeoutError):
                writing.result(timeout=0.5)
            state_db.unlink()  # As when there is no copy to put in its place.
        writing.result(timeout=20)
    assert stat.S_IMODE(state_db.stat().st_mode) == 0o600


def test_a_stopped_process_with_a_damaged_file_blocks_none(state_db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "LOCK_SECONDS", 0.1)
    Cursors(state_db, "corpus").set("a", {"offset": 7})
    with ThreadPoolExecutor(1) as pool, state_transaction(state_db):
        state_db.write_bytes(b"no database at all" * 500)
        reading = pool.submit(Cursors(state_db, "corpus").get, "a")
        with pytest.raises(QueueUnavailable, match="memory doctor"):
            reading.result(timeout=5)


def test_only_its_worker_replaces_a_damaged_queue(state_db: Path) -> None:
    queue_db = state_db.with_name("queue.db")
    Cursors(queue_db, "any database").set("a", {})
    assert back_up(queue_db)
    damaged = b"no database at all" * 500
    queue_db.write_bytes(damaged)
    with pytest.raises(QueueUnavailable, match="damaged"):
        checkpoint(queue_db)
    assert queue_db.read_bytes() == damaged


def test_a_copy_is_not_made_of_a_file_that_is_just_replaced(state_db: Path) -> None:
    Cursors(state_db, "corpus").set("a", {"offset": 7})
    with ThreadPoolExecutor(1) as pool:
        with sole_use(state_db):
            copied = pool.submit(back_up, state_db)
            with pytest.raises(TimeoutError):
                copied.result(timeout=0.5)
        assert copied.result(timeout=20)


def test_a_new_file_that_another_is_just_making_is_waited_for(state_db: Path) -> None:
    state_db.parent.mkdir()
    with closing(sqlite3.connect(state_db, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")  # Against this the change to WAL is refused at once, whatever the timeout.
        release = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        release.start()
        try:
            assert Cursors(state_db, "corpus").all() == {}
        finally:
            release.join()
