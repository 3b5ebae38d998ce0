"""A broken or missing queue.db loses no work: the file is kept, the jobs are recreated."""

import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.queue import schema
from memoryvault.tasks.queue.damage import back_up, backup_of, finish_rebuilding, open_queue
from memoryvault.tasks.queue.kinds import POLICIES as REAL_POLICIES
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.schema import is_readable_anew
from memoryvault.tasks.queue.worker import WorkerContext
from memoryvault.tests.tasks.support import POLICIES, run_worker, wait_until
from memoryvault.tests.tasks.test_worker import nothing, serving
from memoryvault.vault.marker import Marker, create_marker, note_end

pytestmark = pytest.mark.slow


def filled(state: StatePaths) -> None:
    """A queue with one job in each state and many that are done."""
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        for number in range(400):
            ledger.enqueue("effect", {"key": f"done-{number}" * 4})
            claim = ledger.take(lambda: "somebody", 30.0)
            assert claim is not None
            ledger.complete(claim)
        for key in ("dead", "running", "queued"):
            ledger.enqueue("effect", {"key": key}, unique_key=key)
            if key == "queued":
                break
            taken = ledger.take(lambda: "somebody", 30.0)
            assert taken is not None
            if key == "dead":
                ledger.bury(taken, "it was hopeless")
        ledger.pause("single")
        ledger.mark_complete()
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
    opened = open_queue(state, policies=POLICIES, busy_seconds=5.0)
    if opened.rebuilt:
        finish_rebuilding(state, opened.ledger, 90.0)
    return opened.ledger


def test_a_damaged_queue_is_set_aside_and_filled_from_the_markers(state: StatePaths) -> None:
    mark(state, "mined", size=10, offset=10)
    mark(state, "unmined", size=10, offset=4)
    filled(state)
    assert back_up(Path(state.queue_db))
    overwrite(state.queue_db, 0)
    opened = open_queue(state, policies={**POLICIES, **REAL_POLICIES}, busy_seconds=5.0)
    with opened.ledger as ledger:
        finish_rebuilding(state, ledger, 90.0)
        (job,) = ledger.list_jobs()
        assert (job.kind, job.args, job.unique_key) == (
            "reflect.session", {"session": "unmined"}, "reflect.session:unmined",
        )  # fmt: skip
        assert job.run_at <= ledger.now()
        assert ledger.paused() == ["single"], "what the user paused stays so, by the copy of the night"
    assert opened.note is not None
    assert kept(state)[0] in opened.note
    with reopen(state):
        pass
    assert len(kept(state)) == 1, "it is set aside once"


# ---- damage that is not UTF-8: the module sqlite3 then fails to decode, without an error of SQLite


def overwrite_text(state: StatePaths, text: bytes, by: bytes) -> None:
    """Damage every place in which the file holds this text."""
    path = Path(state.queue_db)
    data = path.read_bytes()
    assert text in data
    path.write_bytes(data.replace(text, (by + text)[: len(text)]))


NOT_TEXT = b"\xe6\xf4\x3b\x55"


@pytest.mark.parametrize("where", [b"job_one_queued", b"queuedeffect", b"it was hopeless", b"CREATE TABLE job"])
def test_bytes_that_are_no_text_are_damage(state: StatePaths, where: bytes) -> None:
    filled(state)
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        ledger.record_dead("queuedeffect", "{}", "it was hopeless")
        ledger._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    overwrite_text(state, where, NOT_TEXT)
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
    opened = open_queue(state, busy_seconds=1.0)
    opened.ledger.close()
    assert opened.note is not None
    assert "job holds a value of another type" in opened.note
    assert len(kept(state)) == 1


def test_a_large_file_whose_newest_job_cannot_be_read_is_set_aside(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that finds it damaged starts anew: it would find the same file again, every few seconds."""
    monkeypatch.setattr(schema, "CHECKED_BYTES", 0)
    filled(state)
    with closing(sqlite3.connect(state.queue_db)) as conn:
        pages = [row[0] for row in conn.execute("SELECT pageno FROM dbstat WHERE name = 'job' AND pagetype = 'leaf'")]
    overwrite(state.queue_db, (max(pages) - 1) * 4096)
    assert not is_readable_anew(Path(state.queue_db))
    with reopen(state) as ledger:
        assert ledger.list_jobs() == []
    assert len(kept(state)) == 1
    assert is_readable_anew(Path(state.queue_db))


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
    spool_job(state, "b")
    assert run_worker(state, kill_point=stage)[0] == -signal.SIGKILL
    assert run_worker(state)[0] == 0
    assert len(kept(state)) == 1
    assert os.listdir(Path(state.root, "effects")) == ["b"]


def spool_job(state: StatePaths, key: str) -> None:
    """Report the damage like a hook that finds the file broken."""
    line = json.dumps({"kind": "effect", "args": {"key": key}, "unique_key": key})
    Path(state.spool, f"{time.time_ns()}-1.json").write_text(line + "\n")


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
                ledger._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
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
            ledger._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        # Reads every page, and so has all of them in its cache from here on.
        worker._ledger._conn.execute("PRAGMA quick_check").fetchall()
        overwrite(state.queue_db, 0, 65536)
        assert not is_readable_anew(Path(state.queue_db))
        assert not worker._ledger.damaged
        wait_until(lambda: kept(state), "the damaged file is set aside", seconds=30.0)
