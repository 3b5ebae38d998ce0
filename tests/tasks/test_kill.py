"""Real workers, real signals; afterwards each job is done and each effect happened once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.tasks.support import is_alive, only_job, pid_in, run_worker, wait_until, worker_process

pytestmark = [pytest.mark.slow, pytest.mark.once]


def effects(state: StatePaths) -> list[str]:
    return sorted(os.listdir(Path(state.root, "effects")))


def attempts(state: StatePaths) -> int:
    path = Path(state.root, "attempts.log")
    return len(path.read_text().splitlines()) if path.exists() else 0


def assert_done_once(state: StatePaths, ledger: Ledger, keys: list[str]) -> None:
    assert {job.state for job in ledger.list_jobs()} == {"done"}
    assert effects(state) == keys


@pytest.mark.parametrize(
    ("kill_point", "counted"),
    [
        ("before-claim", 0),
        ("after-claim", 1),
        ("before-effect", 1),
        ("after-effect", 1),
        ("before-completion", 1),
        # Of what was spooled, of a claim, of a completion; a beat may come between.
        ("before-commit@2", None),
        ("before-commit@6", None),
        ("before-commit@9", None),
        ("reconciler", 0),
        ("spool-ingest", 0),
    ],
)
def test_a_worker_killed_at_any_point_loses_and_doubles_nothing(
    state: StatePaths, ledger: Ledger, kill_point: str, counted: int | None
) -> None:
    for key in ("a", "b"):
        ledger.enqueue("effect", {"key": key}, unique_key=key)
    job = {"kind": "effect", "args": {"key": "c"}, "unique_key": "c"}
    Path(state.spool, "1-c.json").write_text(json.dumps(job))
    status, _ = run_worker(state, kill_point=kill_point)
    assert status == -signal.SIGKILL
    assert run_worker(state)[0] == 0
    assert_done_once(state, ledger, ["a", "b", "c"])
    assert os.listdir(state.spool) == []
    if counted is not None:
        assert sorted(job.attempt for job in ledger.list_jobs())[-1] == 1 + counted


@pytest.mark.parametrize("kill_point", ["mid-child", "before-completion"])
def test_a_kill_around_a_child_loses_and_doubles_nothing(state: StatePaths, ledger: Ledger, kill_point: str) -> None:
    ledger.enqueue("child", {"key": "a"})
    run_worker(state, kill_point=kill_point)
    if only_job(ledger).history:  # The child was killed, the worker saw it and put the job back.
        assert only_job(ledger).error == "RuntimeError: child ended with -9:"
        time.sleep(0.1)
    assert run_worker(state)[0] == 0
    assert_done_once(state, ledger, ["a"])
    assert only_job(ledger).attempt in (2, 3)  # The first worker may have tried twice.


def test_a_worker_killed_while_its_child_works_takes_the_child_with_it(state: StatePaths, ledger: Ledger) -> None:
    ledger.enqueue("child", {"key": "a"})
    with worker_process(state, "--forever", "--slow", "30") as worker:
        child = pid_in(Path(state.root, "child.pid"))
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        wait_until(lambda: not is_alive(child), "the child is gone")
    started = time.monotonic()
    assert run_worker(state)[0] == 0
    assert time.monotonic() - started < 20, "the child would have slept for 30"
    assert_done_once(state, ledger, ["a"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_job_end_and_starts_none(state: StatePaths, ledger: Ledger, number: signal.Signals) -> None:
    first, second = (ledger.enqueue("single", {"key": key}) for key in ("a", "b"))
    with worker_process(state, "--forever", "--slow", "1.5") as worker:
        wait_until(lambda: attempts(state) == 1, "the first job runs")
        worker.send_signal(number)
        assert worker.wait(timeout=25) == 0
    assert ledger.get(first).state == "done"
    assert ledger.get(second).state == "queued"
    assert not Path(state.wake_socket).exists()


def test_a_second_signal_ends_the_wait_and_the_job_is_given_back(state: StatePaths, ledger: Ledger) -> None:
    ledger.enqueue("child", {"key": "a"})
    with worker_process(state, "--forever", "--slow", "30") as worker:
        child = pid_in(Path(state.root, "child.pid"))
        worker.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=25) == 0
    assert not is_alive(child)
    assert (only_job(ledger).state, only_job(ledger).attempt) == ("queued", 0)


def test_one_of_two_workers_started_at_once_runs(state: StatePaths, ledger: Ledger) -> None:
    for number in range(20):
        ledger.enqueue("effect", {"key": f"{number:02}"})
    with worker_process(state, "--forever") as first, worker_process(state, "--forever") as second:
        wait_until(lambda: None not in (first.poll(), second.poll()) or first.poll() != second.poll(),
                   "one has left")  # fmt: skip
        wait_until(lambda: not ledger.is_busy(), "all is done")
        refused, serving = (first, second) if first.poll() is not None else (second, first)
        assert refused.wait() == 1
        complaint = refused.complaint()
        assert complaint.startswith("a worker is already running")
        assert complaint.count("\n") == 1
        assert serving.poll() is None
    assert_done_once(state, ledger, [f"{number:02}" for number in range(20)])
    assert attempts(state) == 20


def test_a_stopped_worker_is_replaced_and_its_late_result_is_dropped(state: StatePaths, ledger: Ledger) -> None:
    ledger.enqueue("effect", {"key": "a"})
    with worker_process(state, "--forever", "--lease", "0.6", kill_point="after-effect=STOP") as zombie:
        wait_until(lambda: Path(state.root, "effects", "a").exists(), "the effect has happened")
        time.sleep(0.8)  # Its lease and its beat run out.
        status, errors = run_worker(state, "--lease", "0.6")
        assert status == 0
        assert errors.startswith(f"took over from worker {zombie.pid}, which has stopped beating\n")
        job = only_job(ledger)
        assert (job.state, job.attempt) == ("done", 2)
        zombie.send_signal(signal.SIGCONT)
        assert zombie.wait(timeout=25) == 0  # It has noticed that it was replaced, and left.
    assert only_job(ledger) == job
    assert_done_once(state, ledger, ["a"])
    assert [entry["outcome"] for entry in job.history] == ["lost", "done"]


def test_waiting_worker_takes_over_when_the_other_is_killed(state: StatePaths, ledger: Ledger) -> None:
    ledger.enqueue("effect", {"key": "a"})
    with worker_process(state, "--forever", "--slow", "30") as first:
        wait_until(lambda: attempts(state) == 1, "the first worker is at it")
        with worker_process(state) as second:
            time.sleep(0.7)
            assert second.poll() is None
            first.kill()
            assert second.wait(timeout=25) == 0
    assert_done_once(state, ledger, ["a"])


def test_a_live_worker_is_not_replaced(state: StatePaths, ledger: Ledger) -> None:
    with worker_process(state, "--forever", "--lease", "0.6") as worker:
        wait_until(ledger.worker, "the worker beats")
        with ledger.transaction() as conn:  # As after a clock set forward: the beat looks old.
            conn.execute("UPDATE worker_state SET beat_at = 0")
        status, errors = run_worker(state, "--forever", "--lease", "0.6")
        assert status == 1
        assert errors.startswith("a worker is already running")
        assert worker.poll() is None


def test_a_poison_job_ends_dead_and_the_others_done(state: StatePaths, ledger: Ledger) -> None:
    poison = ledger.enqueue("single", {"key": "poison"})
    for _ in range(3):
        assert run_worker(state, kill_point="before-effect")[0] == -signal.SIGKILL
    healthy = ledger.enqueue("single", {"key": "healthy"})
    assert run_worker(state)[0] == 0
    assert ledger.get(poison).state == "dead"
    assert ledger.get(poison).error == "the worker died or lost its lease in attempt 3"
    assert ledger.get(healthy).state == "done"
    assert effects(state) == ["healthy"]


def test_eight_processes_enqueue_while_a_worker_runs(state: StatePaths, ledger: Ledger) -> None:
    program = """
import sys
from memoryvault.tasks.queue.wakeup import wake_worker
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.tasks.support import POLICIES
ledger = Ledger(sys.argv[1], policies=POLICIES, wakeup=lambda: wake_worker(sys.argv[2]))
for n in range(10):
    ledger.enqueue("effect", {"key": f"{sys.argv[3]}-{n}"})
"""
    arguments = [sys.executable, "-c", program, state.queue_db, state.wake_socket]
    with worker_process(state, "--forever"):
        producers = [subprocess.Popen([*arguments, str(number)], cwd="/") for number in range(8)]
        assert [producer.wait(timeout=60) for producer in producers] == [0] * 8
        wait_until(lambda: not ledger.is_busy(), "all is done")
    assert_done_once(state, ledger, sorted(f"{p}-{n}" for p in range(8) for n in range(10)))
    assert attempts(state) == 80
