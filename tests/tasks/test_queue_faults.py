"""Full disk, read-only folder, a stopped machine, a held lock, thousands of jobs: one line, nothing lost."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.paths import describe_file_system
from memoryvault.tasks.queue import schema
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.records import NewJob
from memoryvault.tasks.queue.worker import Worker, WorkerContext
from memoryvault.tests.tasks.support import only_job, policy, wait_until, worker_process

pytestmark = pytest.mark.slow


FILL = """
import resource, sys
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.tasks.support import POLICIES
from memoryvault.runtime.errors import QueueUnavailable
ledger = Ledger(sys.argv[1], policies=POLICIES)
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
for number in range(10_000):
    try:
        accepted = ledger.enqueue("effect", {"key": f"{number}-" + "x" * 200})
    except QueueUnavailable as error:
        print(accepted, str(error).count(chr(10)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ledger.enqueue("effect", {"key": "there is space again"})
        break
"""


def test_when_the_disk_is_full_an_enqueue_is_refused_whole_and_what_was_accepted_stays(state: StatePaths) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, state.queue_db], cwd="/", capture_output=True, text=True, check=True
    )
    accepted, newlines = map(int, done.stdout.split())
    assert accepted > 50
    assert newlines == 0
    with closing(sqlite3.connect(state.queue_db)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert conn.execute("SELECT count(*), max(id) FROM job").fetchone() == (accepted + 1, accepted + 1)


@pytest.mark.parametrize("busy", [False, True])
def test_a_worker_whose_state_folder_is_gone_says_so_and_leaves(state: StatePaths, ledger: Ledger, busy: bool) -> None:
    """Exit status 0: a service manager starts it again, and the new worker creates a complete folder."""
    if busy:
        ledger.enqueue("effect", {"key": "one"})
    with worker_process(state, "--forever", "--slow", "30" if busy else "0") as process:
        wait_until(lambda: os.path.exists(state.wake_socket), "the worker has started")
        if busy:
            wait_until(lambda: only_job(ledger).state == "running", "it has something to do")
        shutil.rmtree(state.root)
        assert process.wait(15) == 0
        said = process.complaint().splitlines()
    assert not os.path.exists(state.root)
    assert [line for line in said if "was deleted" in line] == said[:1], "the first line, and once"
    assert len(said) == 1 + busy, said


def test_a_machine_that_sleeps_longer_than_a_lease_goes_on_where_it_was(state: StatePaths, ledger: Ledger) -> None:
    ledger.enqueue("effect", {"key": "a"})
    with worker_process(state, "--forever", "--lease", "0.6", "--slow", "0.8") as worker:
        wait_until(lambda: only_job(ledger).state == "running", "the job runs")
        worker.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        worker.send_signal(signal.SIGCONT)
        wait_until(lambda: only_job(ledger).state == "done", "the job is done")
        assert worker.poll() is None
    assert only_job(ledger).attempt == 1


def test_a_lock_of_ten_seconds_costs_nothing_but_time(state: StatePaths, ledger: Ledger) -> None:
    ids = [ledger.enqueue("effect", {"key": str(number)}) for number in range(20)]
    with worker_process(state, "--forever", "--lease", "3", "--slow", "0.05"):
        wait_until(lambda: ledger.get(ids[3]).state == "done", "it is at work")
        with closing(sqlite3.connect(state.queue_db, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(10.0)
            other.execute("ROLLBACK")
        wait_until(lambda: {ledger.get(job).state for job in ids} == {"done"}, "all is done")
    assert sorted(os.listdir(Path(state.root, "effects")), key=int) == [str(number) for number in range(20)]
    assert not Path(state.root, "repeated.log").exists()


@pytest.mark.parametrize("concurrency", [1, 8])
def test_thousands_of_queued_jobs_at_start_are_all_run(state: StatePaths, concurrency: int) -> None:
    policies = {"effect": replace(policy("effect"), concurrency=concurrency)}
    with Ledger(state.queue_db, policies=policies) as ledger:
        # Half of them due at once, half of a quiet period that has passed.
        ledger.enqueue_all(NewJob("effect", {"key": str(n)}, unique_key=str(n)) for n in range(2000))
        ledger.enqueue_all(NewJob("effect", {"key": str(n)}, str(n), run_at=1.0) for n in range(2000, 4000))
    ran: list[int] = []
    context = WorkerContext(state, policies=policies, schedules=())
    report = Worker(context, {"effect": lambda job: ran.append(job.id)}).run_until_idle(120.0)
    assert (report.done, report.timed_out) == (4000, False)
    assert sorted(ran) == list(range(1, 4001))


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small file system")
def test_on_a_full_disk_the_worker_waits_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    place, root = tmp_path / "small", tmp_path / "root"
    place.mkdir()
    root.mkdir()
    program = f"{sys.executable} -m memoryvault.tests.tasks.disk_full_program {place} {root}"
    script = f"mount -t tmpfs -o size=3m tmpfs {place} && cd / && exec {program}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["full: False", "after: 0 False", "reflected: done True"], (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize("forever", [True, False])
def test_a_pause_ends_what_runs_in_seconds_and_keeps_it(state: StatePaths, ledger: Ledger, forever: bool) -> None:
    ledger.enqueue("child", {"key": "a"})
    arguments = ["--slow", "60", "--drain", "60", *(["--forever"] if forever else [])]
    with worker_process(state, *arguments) as process:
        wait_until(lambda: only_job(ledger).state == "running", "the job runs")
        Path(state.stop_file).touch()
        wait_until(lambda: only_job(ledger).state == "queued", "it is given back", seconds=20.0)
        if not forever:
            assert process.wait(20) == 0
    assert only_job(ledger).attempt == 0, "it counts as no attempt"


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_PROTOCOL])
def test_a_file_system_that_cannot_share_memory_is_named_with_what_to_set(state: StatePaths, code: int) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    told = str(schema.unavailable(Path(state.queue_db), error))
    assert (named := describe_file_system(state.root))
    assert named in told
    assert "set MEMORY_STATE_DIR" in told
