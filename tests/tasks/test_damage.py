"""A broken or missing queue.db loses no work: the file is kept, the jobs are recreated."""

import os
import random
import shutil
import signal
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
from memoryvault.tasks.queue.damage import (
    back_up,
    backup_of,
    open_queue,
    requeue_unmined,
    restore_if_damaged,
    restore_pauses,
)
from memoryvault.tasks.queue.job import RunningJob
from memoryvault.tasks.queue.kinds import POLICIES as REAL_POLICIES
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.schema import SHAPE, TABLES, VERSION, find_damage, is_readable_anew
from memoryvault.tasks.queue.worker import Worker, WorkerContext
from memoryvault.tests.support.damage import damaged, rounds
from memoryvault.tests.tasks.support import POLICIES, run_worker, state_in, wait_until
from memoryvault.tests.tasks.test_worker import nothing, serving
from memoryvault.vault.marker import Marker, create_marker, marker_path, note_end, read_marker, rewrite_marker

pytestmark = pytest.mark.slow


def filled(state: StatePaths) -> None:
    """A queue with one job in each state and many that are done."""
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        for number in range(400):
            ledger.enqueue("effect", {"key": f"done-{number}" * 4})
            claim = ledger.take(lambda: "somebody", 30.0)
            assert claim is not None
            ledger.complete(claim)
        for key in ("dead", "running"):
            ledger.enqueue("effect", {"key": key}, unique_key=key)
            taken = ledger.take(lambda: "somebody", 30.0)
            assert taken is not None
            if key == "dead":
                ledger.bury(taken, "it was hopeless")
        ledger.enqueue("effect", {"key": "queued"}, unique_key="queued")
        ledger.pause("single")
        ledger.beat(1)
        move_log(ledger)


def move_log(ledger: Ledger) -> None:
    """Put what is in SQLite's log into the file itself."""
    ledger._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def overwrite(path: str, offset: int, size: int = 4096) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * size)


def kept(state: StatePaths) -> list[str]:
    """The files that were set aside, without their logs."""
    found = Path(state.root).glob("queue.db.damaged-*")
    return sorted(path.name for path in found if not path.name.endswith(("-wal", "-shm")))


def reopen(state: StatePaths) -> Ledger:
    """As a worker does at its start."""
    ledger, _ = open_queue(state, policies=POLICIES, busy_seconds=5.0)
    if ledger.worker() is None:
        restore_pauses(state, ledger)
        requeue_unmined(state, ledger, 90.0)
    return ledger


def test_a_damaged_queue_is_set_aside_and_filled_from_the_markers(state: StatePaths) -> None:
    mark(state, "mined", size=10, offset=10)
    mark(state, "unmined", size=10, offset=4)
    filled(state)
    assert back_up(Path(state.queue_db))
    overwrite(state.queue_db, 0)
    ledger, note = open_queue(state, policies={**POLICIES, **REAL_POLICIES}, busy_seconds=5.0)
    with ledger:
        assert ledger.worker() is None, "no worker has filled it"
        restore_pauses(state, ledger)
        requeue_unmined(state, ledger, 90.0)
        (job,) = ledger.list_jobs()
        assert (job.kind, job.args, job.unique_key) == (
            "reflect.session", {"session": "unmined"}, "reflect.session:unmined",
        )  # fmt: skip
        assert job.run_at <= ledger.now()
        assert ledger.paused() == ["single"], "what the user paused stays so, by the copy of the night"
    assert note is not None
    assert kept(state)[0] in note
    with reopen(state):
        pass
    assert len(kept(state)) == 1, "it is set aside once"


# ---- damage that is not UTF-8: the module sqlite3 then fails to decode, without an error of SQLite


@pytest.mark.parametrize("where", [b"job_one_queued", b"queuedeffect", b"it was hopeless", b"CREATE TABLE job"])
def test_bytes_that_are_no_text_are_damage(state: StatePaths, where: bytes) -> None:
    filled(state)
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        ledger.record_dead("queuedeffect", "{}", "it was hopeless")
        move_log(ledger)
    data = Path(state.queue_db).read_bytes()
    assert where in data
    Path(state.queue_db).write_bytes(data.replace(where, (b"\xe6\xf4\x3b\x55" + where)[: len(where)]))
    with pytest.raises(QueueUnavailable, match="damaged"), Ledger(state.queue_db, policies=POLICIES) as ledger:
        ledger.list_jobs(most=1000)
    with reopen(state) as ledger:
        ledger.enqueue("effect", {"key": "new"})
    assert len(kept(state)) == 1


@pytest.mark.parametrize("change", ["attempt = 'x'", "attempt = 1e308", "run_at = 'soon'", "args = CAST(args AS BLOB)"])
def test_a_value_of_another_type_is_damage(state: StatePaths, change: str) -> None:
    filled(state)
    with closing(sqlite3.connect(state.queue_db)) as conn, conn:
        conn.execute(f"UPDATE job SET {change} WHERE state = 'queued'")
    ledger, note = open_queue(state, busy_seconds=1.0)
    ledger.close()
    assert note is not None
    assert "job holds a value of another type" in note
    assert len(kept(state)) == 1


def test_a_comment_that_another_version_wrote_is_no_damage(state: StatePaths) -> None:
    with closing(sqlite3.connect(state.queue_db)) as conn, conn:
        for statement in TABLES:
            conn.execute(statement.replace("-- running:", "-- in other words:"))
        conn.execute(f"PRAGMA user_version = {VERSION}")
    assert find_damage(Path(state.queue_db), SHAPE) is None


def test_a_copy_is_never_replaced_by_a_damaged_file(state: StatePaths) -> None:
    filled(state)
    assert back_up(Path(state.queue_db))
    before = backup_of(Path(state.queue_db)).read_bytes()
    overwrite(state.queue_db, 0)
    assert not back_up(Path(state.queue_db))
    assert backup_of(Path(state.queue_db)).read_bytes() == before
    assert os.listdir(backup_of(Path(state.queue_db)).parent) == ["queue.db"]


@pytest.mark.parametrize("stage", ["queue-set-aside", "create-tables"])
def test_a_rebuilding_that_is_killed_is_done_by_the_next_start(state: StatePaths, stage: str) -> None:
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        ledger.enqueue("effect", {"key": "a"}, unique_key="a")
    overwrite(state.queue_db, 0)
    Path(state.spool, "1-1.json").write_text('{"kind": "effect", "args": {"key": "b"}, "unique_key": "b"}\n')
    assert run_worker(state, kill_point=stage)[0] == -signal.SIGKILL
    assert run_worker(state)[0] == 0
    assert len(kept(state)) == 1
    assert os.listdir(Path(state.root, "effects")) == ["b"]


def mark(state: StatePaths, session: str, *, size: int, offset: int) -> None:
    """The marker of an ended session whose transcript has `size` bytes, `offset` of them mined."""
    transcript = Path(state.root, f"{session}.jsonl")
    transcript.write_bytes(b"x" * size)
    create_marker(state.markers, Marker(session, transcript=str(transcript), offset=offset))
    note_end(state.markers, session)


def setting(state: StatePaths) -> WorkerContext:
    return WorkerContext(state, poll_seconds=0.1, policies=POLICIES, schedules=())


@pytest.mark.parametrize("accident", ["deleted", "damaged"])
def test_a_worker_whose_file_is_lost_under_it_starts_anew(state: StatePaths, accident: str) -> None:
    with serving(setting(state), {"effect": nothing}):
        if accident == "deleted":
            for ending in ("", "-wal", "-shm"):
                Path(state.queue_db + ending).unlink(missing_ok=True)
        else:
            with Ledger(state.queue_db, policies=POLICIES) as ledger:
                move_log(ledger)
            overwrite(state.queue_db, 0, 65536)

        def enqueued() -> bool:
            if not (Path(state.queue_db).exists() if accident == "deleted" else kept(state)):
                return False
            try:
                with Ledger(state.queue_db, policies=POLICIES, create=False) as ledger:
                    ledger.enqueue("effect", {"key": "a"}, unique_key="a")
            except QueueUnavailable:
                return False
            return True

        wait_until(enqueued, "there is a new queue.db")
        with Ledger(state.queue_db, policies=POLICIES) as ledger:
            wait_until(lambda: {job.state for job in ledger.list_jobs()} == {"done"}, "the job is done")


def test_damage_is_noticed_by_a_worker_that_has_all_it_reads_in_its_cache(state: StatePaths) -> None:
    """It would go on for hours in a file that every hook and command finds broken."""
    with serving(setting(state), {"effect": nothing}) as worker:
        with Ledger(state.queue_db, policies=POLICIES) as ledger:
            move_log(ledger)
        # Reads every page, and so has all of them in its cache from here on.
        worker._ledger._conn.execute("PRAGMA quick_check").fetchall()
        overwrite(state.queue_db, 0, 65536)
        assert not is_readable_anew(Path(state.queue_db))
        assert not worker._ledger.damaged
        wait_until(lambda: kept(state), "the damaged file is set aside", seconds=30.0)


# queue.db and state.db damaged in hundreds of ways: said in a line, replaced once, and the work goes on


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
            mark(state, session, size=SIZE, offset=0)
            ledger.enqueue("reflect.session", {"session": session}, unique_key=f"reflect.session:{session}")
        ledger.enqueue("dashboard.write", {}, unique_key="dashboard.write", delay_seconds=3600)
        ledger.pause("discover.scan")
        ledger.beat(1)
        move_log(ledger)
    return Path(state.queue_db).read_bytes()


def mined(state: StatePaths) -> list[str]:
    markers = (read_marker(marker_path(state.markers, session)) for session in SESSIONS)
    return [marker.session_id for marker in markers if marker is not None and marker.offset == SIZE]


def work(state: StatePaths) -> None:
    """As `memory service worker --until-idle`."""

    def mine(job: RunningJob) -> None:
        marker = read_marker(marker_path(state.markers, str(job.args["session"])))
        if marker is not None:
            rewrite_marker(state.markers, marker.with_offset(SIZE))

    handlers = {**dict.fromkeys(REAL_POLICIES, nothing), "reflect.session": mine}
    context = WorkerContext(state, poll_seconds=0.05, schedules=(), quiet_seconds=0.0)
    report = Worker(context, handlers).run_until_idle(30.0)
    assert not report.timed_out


def look(state: StatePaths) -> None:
    """As commands do; each says in a line that the file can't be used, or answers."""
    views: list[Callable[[Ledger], object]] = [
        lambda ledger: ledger.list_jobs(most=100),
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
