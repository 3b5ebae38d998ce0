"""queue.db and state.db damaged in hundreds of ways: said in a line, replaced once, and the work goes on.

`MEMORY_FUZZ_ROUNDS=1000 pytest -m slow tests/tasks/test_fuzzed_databases.py` does more of it.
"""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from memoryvault.hooks.enqueue import spool_reflection
from memoryvault.runtime.errors import MemoryVaultError, QueueUnavailable
from memoryvault.runtime.layout import StatePaths
from memoryvault.services.cursors import Cursors
from memoryvault.services.spending import BudgetRefused, SpendingBook
from memoryvault.services.state_db import replace_texts
from memoryvault.tasks.queue.damage import requeue_unmined, restore_if_damaged
from memoryvault.tasks.queue.job import RunningJob
from memoryvault.tasks.queue.kinds import POLICIES
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.worker import Worker, WorkerContext
from memoryvault.tests.support.damage import damaged, rounds
from memoryvault.tests.tasks.support import state_in
from memoryvault.vault.marker import Marker, create_marker, marker_path, note_end, read_marker, rewrite_marker

pytestmark = pytest.mark.slow

SESSIONS = ("first", "second", "third")
SIZE = 10


def filled_queue(state: StatePaths) -> bytes:
    """The bytes of a queue with jobs of several kinds and states, and three sessions that are to be mined."""
    with Ledger(state.queue_db) as ledger:
        for number in range(20):
            ledger.enqueue("markers.gc", {"slot": f"slot-{number}"})
            claim = ledger.take(lambda: "somebody", 30.0)
            assert claim is not None
            ledger.complete(claim, {"removed": number})
        ledger.record_dead("spool.ingest", "{}", "it was no job")
        for session in SESSIONS:
            transcript = Path(state.root, f"{session}.jsonl")
            transcript.write_bytes(b"x" * SIZE)
            create_marker(state.markers, Marker(session, transcript=str(transcript)))
            note_end(state.markers, session)
            ledger.enqueue("reflect.session", {"session": session}, unique_key=f"reflect.session:{session}")
        ledger.enqueue("dashboard.write", {}, unique_key="dashboard.write", delay_seconds=3600)
        ledger.pause("discover.scan")
        ledger.beat("somebody", 1, "0.1.0")
        ledger.mark_complete()
        ledger._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return Path(state.queue_db).read_bytes()


def mine(state: StatePaths) -> Callable[[RunningJob], None]:
    def handler(job: RunningJob) -> None:
        marker = read_marker(marker_path(state.markers, str(job.args["session"])))
        if marker is not None:
            rewrite_marker(state.markers, marker.with_offset(SIZE))

    return handler


def mined(state: StatePaths) -> list[str]:
    markers = (read_marker(marker_path(state.markers, session)) for session in SESSIONS)
    return [marker.session_id for marker in markers if marker is not None and marker.offset == SIZE]


def work(state: StatePaths) -> None:
    """As `memory service worker --until-idle`."""
    handlers = {kind: lambda job: None for kind in POLICIES} | {"reflect.session": mine(state)}
    context = WorkerContext(state, poll_seconds=0.05, schedules=(), quiet_seconds=0.0)
    report = Worker(context, handlers).run_until_idle(30.0)
    assert not report.timed_out


def look(state: StatePaths) -> None:
    """As commands do; each says in a line that the file can't be used, or answers."""
    views: list[Callable[[Ledger], object]] = [
        lambda ledger: ledger.list_jobs(most=100),
        lambda ledger: ledger.page(most=10, text="slot"),
        lambda ledger: ledger.of_session("first"),
        lambda ledger: ledger.due_later(),
        lambda ledger: ledger.worker(),
        lambda ledger: ledger.paused(),
    ]
    for view in views:
        with suppress(MemoryVaultError), Ledger(state.queue_db, busy_seconds=0.2, create=False) as ledger:
            view(ledger)


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_queue_stops_nobody_and_loses_no_session(tmp_path: Path, part: int) -> None:
    whole = tmp_path / "whole"
    data = filled_queue(state_in(whole))
    for number in range(part, rounds(60), 4):
        state = StatePaths(tmp_path / "state")
        shutil.copytree(whole, state.root)
        for session in SESSIONS:
            marker = read_marker(marker_path(state.markers, session))
            assert marker is not None
            rewrite_marker(state.markers, marker)
        Path(state.queue_db).write_bytes(damaged(data, random.Random(f"queue {number}")))
        try:
            look(state)
            spool_reflection(state.spool, "first", None)
            work(state)
            if mined(state) != [*SESSIONS]:  # A job that reads well but was another: the sweep makes it again.
                with Ledger(state.queue_db) as ledger:
                    requeue_unmined(state, ledger, 0.0)
                work(state)
            assert mined(state) == [*SESSIONS]
            look(state)
            assert sum("damaged" in name and name[-4:] not in ("-wal", "-shm") for name in os.listdir(state.root)) <= 1
            with closing(sqlite3.connect(state.queue_db)) as conn:
                assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        except BaseException as error:
            error.add_note(f"round {number}")
            raise
        shutil.rmtree(state.root)


def filled_state(path: Path) -> bytes:
    for scan in ("corpus", "discovery", "skills"):
        for number in range(12):
            Cursors(path, scan).set(f"source-{number}", {"offset": number, "seen": ["a", "b" * number]})
    book = SpendingBook(path, "mining")
    for number in range(12):
        book.settle(book.reserve(f"session-{number}", {"tokens": 5}), {"tokens": 5})
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return path.read_bytes()


@pytest.mark.parametrize("with_copy", [True, False])
def test_a_damaged_state_db_is_told_in_a_line_and_used_again_after_that(tmp_path: Path, with_copy: bool) -> None:
    path = tmp_path / "state" / "state.db"
    data = filled_state(tmp_path / "whole" / "state.db")

    def write() -> None:
        book = SpendingBook(path, "mining")
        with suppress(BudgetRefused):
            book.settle(book.reserve("new", {"tokens": 1}), {"tokens": 1})

    uses: list[Callable[[], object]] = [
        lambda: Cursors(path, "corpus").all(),
        lambda: Cursors(path, "skills").get("source-3"),
        lambda: Cursors(path, "corpus").set("source-3", {"offset": 9}),
        write,
        lambda: replace_texts(path, lambda text: text, apply=False),
    ]
    for number in range(with_copy, rounds(60), 2):
        (path.parent / "backup").mkdir(parents=True)
        if with_copy:
            (path.parent / "backup" / "state.db").write_bytes(data)
        path.write_bytes(damaged(data, random.Random(f"state {number}")))

        try:
            for use in random.Random(number).sample(uses, len(uses)):
                try:
                    use()
                except QueueUnavailable:
                    use()  # "try again": it was replaced.
            restore_if_damaged(path)  # As a worker at its start.
            for use in uses:
                use()
            assert Cursors(path, "corpus").get("source-3")
            assert sum("damaged" in name for name in os.listdir(path.parent)) <= 3
        except BaseException as error:
            error.add_note(f"round {number}")
            raise
        shutil.rmtree(path.parent)
