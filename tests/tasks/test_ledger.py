"""The ledger: its rules with a controlled clock, what hooks spool for it, and its file."""

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.runtime.errors import QueueUnavailable, SchemaTooNew
from memoryvault.schedules.table import SCHEDULES
from memoryvault.tasks.queue import queries, schema
from memoryvault.tasks.queue.damage import open_queue
from memoryvault.tasks.queue.enqueue import Spool
from memoryvault.tasks.queue.kinds import ArgsInvalid, validate_args
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.records import Claim, JobNotFound, JobStateRefused, NewJob
from memoryvault.tasks.queue.schema import AGING_SECONDS
from memoryvault.tests.tasks.support import POLICIES, only_job, policy, state_in

LEASE_SECONDS = 30.0
DAY_SECONDS = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "queue.db", policies=POLICIES, clock=clock, chance=random.Random(1)) as ledger:
        yield ledger


def take(ledger: Ledger, owner: str = "a") -> Claim:
    claim = ledger.take(lambda: owner, LEASE_SECONDS)
    assert claim is not None
    return claim


def nothing_to_take(ledger: Ledger) -> bool:
    return ledger.take(lambda: "b", LEASE_SECONDS) is None


def test_a_failed_enqueue_leaves_nothing(ledger: Ledger) -> None:
    with pytest.raises(ArgsInvalid, match="unknown argument 'no'"):
        ledger.enqueue_all([NewJob("effect", {}), NewJob("effect", {"no": 1})])
    assert ledger.list_jobs() == []


def test_a_delayed_job_runs_when_it_is_due(ledger: Ledger, clock: Clock) -> None:
    job_id = ledger.enqueue("effect", delay_seconds=90)
    assert nothing_to_take(ledger)
    clock.now += 91
    assert take(ledger).job_id == job_id
    assert nothing_to_take(ledger)


def test_a_quiet_period_begins_again_with_each_stop(ledger: Ledger, clock: Clock) -> None:
    first = ledger.enqueue("effect", unique_key="s", delay_seconds=90, due="later")
    clock.now += 60
    assert ledger.enqueue("effect", unique_key="s", delay_seconds=90, due="later") == first
    assert ledger.get(first).run_at == clock.now + 90


def test_an_immediate_request_brings_the_job_forward_and_a_late_one_not_back(ledger: Ledger, clock: Clock) -> None:
    job_id = ledger.enqueue("effect", unique_key="s", delay_seconds=90)
    ledger.enqueue("effect", unique_key="s")
    ledger.enqueue("effect", unique_key="s", delay_seconds=500)
    assert only_job(ledger).run_at == clock.now
    assert take(ledger).job_id == job_id


def test_while_a_job_runs_its_key_can_be_queued_but_not_run(ledger: Ledger) -> None:
    first = ledger.enqueue("effect", unique_key="s")
    claim = take(ledger)
    second = ledger.enqueue("effect", unique_key="s")
    assert second != first
    assert nothing_to_take(ledger)
    ledger.complete(claim)
    assert take(ledger, "b").job_id == second


def test_a_kind_at_its_limit_waits_until_one_has_ended(ledger: Ledger) -> None:
    first, second, _ = (ledger.enqueue("single") for _ in range(3))
    other = ledger.enqueue("effect")
    claim = take(ledger)
    assert claim.job_id == first
    assert take(ledger).job_id == other
    assert nothing_to_take(ledger)
    ledger.complete(claim)
    assert take(ledger).job_id == second


def test_only_the_owner_of_the_attempt_can_end_it(ledger: Ledger, clock: Clock) -> None:
    ledger.enqueue("effect")
    zombie = take(ledger, "zombie")
    clock.now += LEASE_SECONDS + 1
    assert ledger.requeue_expired() == [zombie.job_id]
    owner = take(ledger, "owner")
    assert ledger.heartbeat([zombie], LEASE_SECONDS) == [zombie]
    assert not ledger.still_owned(zombie)
    assert not ledger.complete(zombie)
    assert ledger.fail(zombie, "late") is None
    assert not ledger.postpone(zombie, "late", 1)
    assert not ledger.release(zombie)
    assert not ledger.bury(zombie, "late")
    assert ledger.still_owned(owner)
    assert ledger.complete(owner, {"files": 2})
    job = only_job(ledger)
    assert (job.state, job.attempt) == ("done", 2)
    assert [entry["outcome"] for entry in job.history] == ["lost", "done"]
    assert job.history[1]["result"] == {"files": 2}


def test_a_heartbeat_keeps_the_lease(ledger: Ledger, clock: Clock) -> None:
    ledger.enqueue("effect")
    claim = take(ledger)
    for _ in range(5):
        clock.now += LEASE_SECONDS - 1
        assert ledger.heartbeat([claim], LEASE_SECONDS) == []
        assert ledger.requeue_expired() == []


def test_failures_back_off_and_the_last_attempt_is_dead_and_can_be_replayed(ledger: Ledger, clock: Clock) -> None:
    job_id = ledger.enqueue("effect")
    for attempt in (1, 2, 3):
        claim = take(ledger)
        assert claim.attempt == attempt
        ledger.fail(claim, f"broken {attempt}")
        clock.now += 10
    job = ledger.get(job_id)
    assert (job.state, job.error) == ("dead", "broken 3")
    ledger.retry(job_id)
    ledger.complete(take(ledger))
    job = ledger.get(job_id)
    assert (job.state, job.attempt, job.error) == ("done", 1, None)
    assert [entry["error"] for entry in job.history] == ["broken 1", "broken 2", "broken 3", None]
    with pytest.raises(JobStateRefused, match="is done"):
        ledger.retry(job_id)


def test_an_error_that_names_a_file_whose_name_is_no_text_is_kept(ledger: Ledger) -> None:
    """Otherwise the attempt could not be recorded and would count as a crash, five times over."""
    job_id = ledger.enqueue("effect")
    ledger.bury(take(ledger), "\udcff\0.jsonl\nis refused")
    job = ledger.get(job_id)
    assert (job.state, job.error) == ("dead", "??.jsonl is refused")


def test_the_pause_doubles_up_to_its_cap_and_is_jittered() -> None:
    chance = random.Random(3)
    limits = policy("k", backoff=(10.0, 60.0))
    for attempt, top in ((1, 10), (2, 20), (3, 40), (4, 60), (400, 60)):
        pauses = [limits.backoff_seconds(attempt, chance) for _ in range(50)]
        assert top / 2 <= min(pauses) < max(pauses) <= top


def test_a_postponed_attempt_does_not_count(ledger: Ledger, clock: Clock) -> None:
    ledger.enqueue("effect")
    for _ in range(30):
        ledger.postpone(take(ledger), "the vault is not mounted", 60)
        clock.now += 61
    job = only_job(ledger)
    assert (job.state, job.attempt) == ("queued", 0)
    assert len(job.history) == 20


def test_a_released_job_is_due_at_once_and_uncounted(ledger: Ledger) -> None:
    ledger.enqueue("effect")
    assert ledger.release(take(ledger))
    assert take(ledger).attempt == 1


def test_a_failed_job_whose_key_was_queued_again_goes_on_there_with_its_attempts(ledger: Ledger) -> None:
    first = ledger.enqueue("effect", unique_key="s")
    claim = take(ledger)
    second = ledger.enqueue("effect", unique_key="s")
    ledger.fail(claim, "broken")
    assert ledger.get(first).state == "cancelled"
    assert ledger.get(first).error == f"broken (continued by job {second})"
    assert (ledger.get(second).state, ledger.get(second).attempt) == ("queued", 1)


def test_a_crashed_job_whose_key_was_queued_again_goes_on_there(ledger: Ledger) -> None:
    ledger.enqueue("effect", unique_key="s")
    take(ledger)
    second = ledger.enqueue("effect", unique_key="s")
    ledger.requeue_expired(all_held_elsewhere=True)
    assert take(ledger).job_id == second


def test_a_cancelled_job_is_lost_to_its_owner(ledger: Ledger) -> None:
    running, queued = ledger.enqueue("effect"), ledger.enqueue("effect")
    claim = take(ledger)
    assert ledger.cancel(running).state == "cancelled"
    assert ledger.cancel(queued).state == "cancelled"
    assert ledger.heartbeat([claim], LEASE_SECONDS) == [claim]
    assert not ledger.complete(claim)
    assert nothing_to_take(ledger)
    with pytest.raises(JobStateRefused, match="is cancelled"):
        ledger.cancel(running)
    with pytest.raises(JobNotFound, match="no job 99"):
        ledger.cancel(99)


def test_a_paused_kind_starts_nothing_until_it_is_resumed(ledger: Ledger) -> None:
    job_id = ledger.enqueue("effect")
    ledger.pause("effect")
    assert ledger.paused() == ["effect"]
    assert nothing_to_take(ledger)
    assert not ledger.is_busy()
    ledger.resume("effect")
    assert take(ledger).job_id == job_id
    with pytest.raises(ArgsInvalid, match="no such job kind"):
        ledger.pause("nonsense")


def test_urgent_work_goes_first_but_does_not_starve_what_waited_long(ledger: Ledger, clock: Clock) -> None:
    plain = ledger.enqueue("effect")
    clock.now += 1
    urgent = ledger.enqueue("urgent")
    clock.now += 10 * AGING_SECONDS
    late = ledger.enqueue("urgent")
    assert [take(ledger).job_id for _ in range(3)] == [urgent, plain, late]


def test_a_clock_set_back_a_day_delays_nothing(ledger: Ledger, clock: Clock) -> None:
    failing = ledger.enqueue("effect")
    ledger.fail(take(ledger), "broken")
    delayed = ledger.enqueue("effect", delay_seconds=90)
    ledger.enqueue("effect")
    clock.now -= DAY_SECONDS
    assert ledger.follow_clock() >= 2
    ledger.complete(take(ledger))
    assert ledger.get(delayed).run_at == clock.now + 90
    assert ledger.get(failing).run_at <= clock.now + 1


def test_the_pause_that_a_host_asks_for_is_kept_though_longer_than_a_backoff(ledger: Ledger, clock: Clock) -> None:
    waiting = ledger.enqueue("effect")
    ledger.fail(take(ledger), "its allowance is used up", after_seconds=DAY_SECONDS)
    again = clock.now + DAY_SECONDS
    clock.now += 60
    assert ledger.follow_clock() == 0
    assert ledger.get(waiting).run_at == again


def test_a_retry_of_a_job_from_before_waits_no_day_when_the_clock_is_set_back(ledger: Ledger, clock: Clock) -> None:
    failing = ledger.enqueue("effect")
    clock.now += 3 * DAY_SECONDS
    ledger.fail(take(ledger), "broken", after_seconds=60)
    clock.now -= DAY_SECONDS
    assert ledger.follow_clock() == 1
    assert ledger.get(failing).run_at == clock.now


def test_a_quiet_period_under_a_clock_a_year_ahead_ends_when_that_is_set_right(ledger: Ledger, clock: Clock) -> None:
    stopped = ledger.enqueue("effect", unique_key="s", delay_seconds=90, due="later")
    clock.now += 365 * DAY_SECONDS
    assert ledger.enqueue("effect", unique_key="s", delay_seconds=90, due="later") == stopped
    clock.now -= 365 * DAY_SECONDS
    assert ledger.follow_clock() == 1
    assert ledger.get(stopped).run_at == clock.now


def test_a_clock_set_forward_a_day_takes_nothing_from_who_holds_it(ledger: Ledger, clock: Clock) -> None:
    ledger.enqueue("effect")
    claim = take(ledger, "me")
    clock.now += DAY_SECONDS
    assert ledger.requeue_expired(["me"]) == []
    assert ledger.heartbeat([claim], LEASE_SECONDS) == []
    clock.now -= DAY_SECONDS
    assert ledger.requeue_expired(["another"]) == [claim.job_id]


def test_advance_leaves_jobs_that_wait_after_a_failure(ledger: Ledger, clock: Clock) -> None:
    failed = ledger.enqueue("effect")
    ledger.fail(take(ledger), "broken", after_seconds=50)
    quiet, far = ledger.enqueue("effect", delay_seconds=90), ledger.enqueue("effect", delay_seconds=900)
    assert ledger.advance(100) == 1
    assert ledger.get(quiet).run_at == clock.now
    assert ledger.get(failed).run_at == clock.now + 50
    assert ledger.get(far).run_at == clock.now + 900


def test_claiming_never_reads_finished_jobs(ledger: Ledger) -> None:
    with ledger.transaction() as conn:
        conn.execute(
            """INSERT INTO job (kind, args, state, run_at, created_at, finished_at)
               WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
               SELECT 'effect', '{}', 'done', 1.0, 1.0, 1.0 FROM n"""
        )
    some = {
        "id": 1, "unique_key": "s", "now": 1.0, "full": "[]", "held": "[]",
        "all_others": 0, "longest_lease": 1.0, "owner": "a", "lease": 1.0, "attempt": 1, "state": "done",
        "outcome": "done", "error": None, "result": "null", "within": 1.0, "tolerance": 1.0, "longest": 1.0,
    }  # fmt: skip
    for name in ("NEXT", "CLAIM", "FINISH", "QUEUED_BY_KEY", "RUNNING_BY_KIND", "EXPIRED",
                 "BACKLOG", "ADVANCE", "PULL_FROM_FUTURE", "PULL_TIME_FROM_FUTURE"):  # fmt: skip
        for row in ledger.read("EXPLAIN QUERY PLAN " + getattr(queries, name), some):
            assert "SCAN job" not in row[3] or "INDEX" in row[3], f"{name}: {row[3]}"
            assert name != "NEXT" or "ORDER BY" not in row[3], "the first of the waiting jobs, without sorting them"


def test_a_locked_file_is_said_in_one_line(tmp_path: Path, ledger: Ledger) -> None:
    blocker = sqlite3.connect(tmp_path / "queue.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with Ledger(tmp_path / "queue.db", busy_seconds=0.05) as other:
        with pytest.raises(QueueUnavailable, match=r"queue\.db is locked by another program"):
            other.enqueue("embed.drain")
        assert other.list_jobs() == []
        blocker.close()
        other.enqueue("embed.drain")


def test_a_missing_file_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(QueueUnavailable, match="does not exist yet"):
        Ledger(tmp_path / "none.db", create=False)


def test_every_schedule_enqueues_a_kind_with_arguments_that_fit() -> None:
    for schedule in SCHEDULES:
        validate_args(schedule.kind, {"slot": "x"})


@pytest.mark.parametrize(
    ("kind", "args", "complaint"),
    [
        ("nonsense", {}, "no such job kind: 'nonsense'"),
        ("reflect.session", [], "not an object"),
        ("reflect.session", {}, "missing session"),
        ("reflect.session", {"session": "../x"}, "session is not a session"),
        ("reflect.session", {"session": ".x"}, "session is not a session"),
        ("reflect.session", {"session": "a", "body": "b"}, "unknown argument 'body'"),
        ("index.reconcile", {"full": 1}, "full is not a flag"),
        ("research.idea", {"slug": ""}, "slug is not a text"),
        ("research.idea", {"slug": "x" * 5000}, "slug is not a text"),
    ],
)
def test_arguments_that_do_not_fit_are_named(kind: str, args: object, complaint: str) -> None:
    with pytest.raises(ArgsInvalid, match=complaint):
        validate_args(kind, args)


# Jobs that hooks could not put into queue.db are enqueued later


@pytest.fixture
def spool(tmp_path: Path, ledger: Ledger) -> Spool:
    (tmp_path / "spool").mkdir()
    return Spool(tmp_path / "spool", ledger)


def drop(tmp_path: Path, name: str, fields: object) -> None:
    """What a hook leaves."""
    (tmp_path / "spool" / name).write_text(json.dumps(fields))


def test_files_become_jobs_oldest_first(tmp_path: Path, spool: Spool, ledger: Ledger) -> None:
    job = {"kind": "effect", "args": {"key": "b"}, "unique_key": "s", "run_at": 5.5e9, "policy": "later"}
    drop(tmp_path, "1000-7.json", job)
    drop(tmp_path, "999-8.json", {**job, "args": {"key": "a"}, "run_at": 5e9})
    (tmp_path / "spool" / ".half.json").write_text("{")
    (tmp_path / "spool" / "half.tmp").write_text("{")
    assert spool.ingest() == 2
    assert only_job(ledger).args == {"key": "a"}
    assert only_job(ledger).run_at == 5.5e9
    assert spool.is_empty()
    assert spool.ingest() == 0


def test_file_that_cannot_be_enqueued_becomes_a_dead_job(tmp_path: Path, spool: Spool, ledger: Ledger) -> None:
    (tmp_path / "spool" / "1-1.json").write_bytes(b'{"kind": \xff')
    drop(tmp_path, "2-1.json", {"kind": "gone", "args": {}})
    drop(tmp_path, "3-1.json", {"kind": "effect", "args": {"key": 7}})
    drop(tmp_path, "4-1.json", ["effect"])
    drop(tmp_path, "5-1.json", {"kind": "effect", "args": {}, "run_at": "soon"})
    (tmp_path / "spool" / "6-1.json").write_text('{"kind":' + "[" * 100_000)  # Deeper than the parser goes.
    assert spool.ingest() == 0
    jobs = ledger.list_jobs()
    assert {job.state for job in jobs} == {"dead"}
    assert [job.error.split(":")[0] for job in jobs if job.error] == [f"{n}-1.json" for n in (6, 5, 4, 3, 2, 1)]
    assert spool.is_empty()


def test_a_spool_that_is_not_there_is_empty(tmp_path: Path, ledger: Ledger) -> None:
    assert Spool(tmp_path / "none", ledger).ingest() == 0


def test_more_files_than_one_batch_are_all_taken(tmp_path: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(450):
        drop(tmp_path, f"{number}-1.json", {"kind": "effect", "args": {"key": str(number)}})
    assert spool.ingest() == 450
    assert ledger.backlog().due == 450


# queue.db is created once, and never written by a version that does not know its schema


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
    ledger, note = open_queue(state, busy_seconds=5.0)
    with ledger:
        assert ledger.worker() is None
    assert "written by an older version" in str(note)


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
