"""The worker's second loop: real threads over a real server, which goes away and comes back."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.postgres.connection import Impatient
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tasks.postgres.loop import LoopContext, SharedLoop
from memoryvault.tasks.queue.job import Dead, Handler, RunningJob
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.worker import Worker, WorkerContext
from memoryvault.tests.support.postgres import Cluster
from memoryvault.tests.tasks.support import POLICIES, state_in, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SHARED = {
    kind: replace(policy, optional={**policy.optional, "to": "name"}, concurrency=1000)
    for kind, policy in POLICIES.items()
}
FAR_AWAY_SECONDS = 600.0


def shared_ledger(conninfo: str, machine: str = "desk", *, work: bool = True, connect: bool = True) -> PostgresLedger:
    return PostgresLedger(conninfo, policies=SHARED, machine=machine, work=work, connect=connect)


def loop_over(
    conninfo: str,
    handlers: Mapping[str, Handler],
    machine: str = "desk",
    *,
    work: bool = True,
    poll_seconds: float = 0.2,
    drain_seconds: float = 5.0,
    stopped: Callable[[], bool] = lambda: False,
) -> SharedLoop:
    def opened(bell: Callable[[], None]) -> PostgresLedger:
        ledger = shared_ledger(conninfo, machine, work=work, connect=False)
        ledger.bell = bell
        return ledger

    context = LoopContext(
        opened, machine, stopped, lease_seconds=3.0, drain_seconds=drain_seconds, poll_seconds=poll_seconds
    )
    return SharedLoop(context, lambda local, shared: handlers)


def worker_over(
    state: StatePaths, loops: Sequence[SharedLoop], handlers: Mapping[str, Handler] | None = None
) -> Worker:
    context = WorkerContext(
        state, poll_seconds=0.2, lease_seconds=3.0, drain_seconds=5.0, policies=POLICIES, schedules=()
    )
    return Worker(context, handlers or {}, (), loops)


@contextmanager
def serving(worker: Worker, state: StatePaths) -> Iterator[None]:
    """It serves in a thread of its own."""
    thread = threading.Thread(target=worker.run_forever)
    thread.start()
    try:
        wait_until(lambda: Path(state.wake_socket).exists(), "the worker has started")
        yield
    finally:
        worker.leave()
        thread.join(timeout=20.0)
        assert not thread.is_alive()


class Ran:
    """A handler that notes what it ran."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, job: RunningJob) -> None:
        self.keys.append(str(job.args["key"]))


def test_a_worker_runs_the_jobs_of_both_queues(conninfo: str, state: StatePaths, ledger: Ledger) -> None:
    here, shared = Ran(), Ran()
    ledger.enqueue("effect", {"key": "mine"})
    with shared_ledger(conninfo, "sofa") as other:
        for number in range(20):
            other.enqueue("effect", {"key": str(number)})
        worker = worker_over(state, [loop_over(conninfo, {"effect": shared})], {"effect": here})
        report = worker.run_until_idle(20.0)
        assert (report.done, report.timed_out) == (21, False)
        assert here.keys == ["mine"]
        assert sorted(shared.keys, key=int) == [str(number) for number in range(20)]
        assert other.counts() == {"effect": {"done": 20}}


def test_what_dies_of_the_shared_queue_is_told_apart(conninfo: str, state: StatePaths, ledger: Ledger) -> None:
    def dies(job: RunningJob) -> None:
        raise Dead("it cannot be read")

    ledger.enqueue("effect", {"key": "mine"})
    with shared_ledger(conninfo, "sofa") as other:
        other.enqueue("effect", {"key": "theirs"})
        report = worker_over(state, [loop_over(conninfo, {"effect": dies})], {"effect": Ran()}).run_until_idle(20.0)
        assert other.counts() == {"effect": {"dead": 1}}
    assert (report.done, report.dead, report.dead_shared) == (1, 0, 1)


def test_what_is_addressed_to_a_machine_runs_there_alone(conninfo: str, tmp_path: Path) -> None:
    desk, sofa = Ran(), Ran()
    with shared_ledger(conninfo, "phone") as ledger:
        for number in range(10):
            ledger.enqueue("effect", {"key": f"d{number}", "to": "desk"})
            ledger.enqueue("effect", {"key": f"s{number}", "to": "sofa"})
        for name, ran in (("sofa", sofa), ("desk", desk)):
            state = state_in(tmp_path / name)
            worker_over(state, [loop_over(conninfo, {"effect": ran}, name)]).run_until_idle(20.0)
        assert ledger.counts() == {"effect": {"done": 20}}
    assert {key[0] for key in desk.keys} == {"d"}
    assert {key[0] for key in sofa.keys} == {"s"}


def test_a_machine_that_does_not_work_for_others_takes_its_own_results(conninfo: str, state: StatePaths) -> None:
    ran = Ran()
    with shared_ledger(conninfo, "sofa") as ledger:
        ledger.enqueue("effect", {"key": "anybody"})
        ledger.enqueue("effect", {"key": "for the desk", "to": "desk"})
        worker_over(state, [loop_over(conninfo, {"effect": ran}, work=False)]).run_until_idle(20.0)
        assert ledger.counts() == {"effect": {"done": 1, "queued": 1}}
    assert ran.keys == ["for the desk"]


def test_a_notification_wakes_who_waits(conninfo: str, state: StatePaths) -> None:
    ran = Ran()
    loop = loop_over(conninfo, {"effect": ran}, poll_seconds=FAR_AWAY_SECONDS)
    with shared_ledger(conninfo, "sofa") as ledger, serving(worker_over(state, [loop]), state):
        wait_until(lambda: listeners(conninfo) == 1, "it listens")
        time.sleep(0.5)  # Its first look is over.
        ledger.enqueue("effect", {"key": "now"})
        wait_until(lambda: ran.keys == ["now"], "it was woken")


def test_without_a_listener_work_is_found_by_looking(
    conninfo: str, state: StatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryvault.tasks.postgres.storage.SharedStorage.start_listening", lambda self: None)
    ran = Ran()
    with (
        shared_ledger(conninfo, "sofa") as ledger,
        serving(worker_over(state, [loop_over(conninfo, {"effect": ran})]), state),
    ):
        wait_until(lambda: ledger.worker() is not None, "it works")
        ledger.enqueue("effect", {"key": "now"})
        wait_until(lambda: ran.keys == ["now"], "it looked")


def test_a_worker_whose_database_is_away_does_its_own_work_and_joins_when_it_is_back(
    own: Cluster, state: StatePaths, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    here, shared, conninfo = Ran(), Ran(), own.conninfo()
    with shared_ledger(conninfo, "sofa") as other:
        other.enqueue("effect", {"key": "theirs"})
    own.stop()
    worker = worker_over(state, [loop_over(conninfo, {"effect": shared})], {"effect": here})
    with serving(worker, state):
        ledger.enqueue("effect", {"key": "mine"})
        wait_until(lambda: here.keys == ["mine"], "its own work is done")
        wait_until(lambda: "the shared queue cannot be used" in caplog.text, "it says so")
        own.start()
        wait_until(lambda: shared.keys == ["theirs"], "it has joined", 30.0)
    assert caplog.text.count("the shared queue cannot be used") == 1


def test_a_server_that_is_restarted_in_mid_job_loses_and_doubles_nothing(own: Cluster, state: StatePaths) -> None:
    conninfo, ran, restarted = own.conninfo(), Ran(), threading.Event()

    def handler(job: RunningJob) -> None:
        ran(job)
        restarted.wait(20.0)

    with (
        shared_ledger(conninfo, "sofa") as ledger,
        serving(worker_over(state, [loop_over(conninfo, {"effect": handler})]), state),
    ):
        for number in range(8):
            ledger.enqueue("effect", {"key": str(number)})
        wait_until(lambda: len(ran.keys) == 2, "two run")
        own.stop()
        own.start()
        restarted.set()

        def done() -> bool:
            with suppress(Exception):
                return ledger.counts() == {"effect": {"done": 8}}
            return False

        wait_until(done, "all are done", 30.0)
    assert sorted(ran.keys) == [str(number) for number in range(8)]


def test_a_worker_that_leaves_gives_back_what_runs(conninfo: str, state: StatePaths) -> None:
    started = threading.Event()

    def handler(job: RunningJob) -> None:
        started.set()
        job.lost.wait(30.0)
        job.check_owned()

    loop = loop_over(conninfo, {"effect": handler}, drain_seconds=0.2)
    with shared_ledger(conninfo, "sofa") as ledger:
        ledger.enqueue("effect", {"key": "long"})
        with serving(worker_over(state, [loop]), state):
            assert started.wait(20.0)
        (job,) = ledger.list()
        assert (job.state, job.attempt, job.history[0]["outcome"]) == ("queued", 0, "released")
        assert ledger.worker() is None


def test_a_job_that_is_cancelled_from_elsewhere_stops(conninfo: str, state: StatePaths) -> None:
    stopped = threading.Event()

    def handler(job: RunningJob) -> None:
        job.lost.wait(30.0)
        stopped.set()
        job.check_owned()

    with (
        shared_ledger(conninfo, "sofa") as ledger,
        serving(worker_over(state, [loop_over(conninfo, {"effect": handler})]), state),
    ):
        job_id = ledger.enqueue("effect", {"key": "long"})
        wait_until(lambda: ledger.get(job_id).state == "running", "it runs")
        ledger.cancel(job_id)
        wait_until(stopped.is_set, "its heart noticed")


def test_the_stop_file_stops_both_loops(conninfo: str, state: StatePaths) -> None:
    ran = Ran()
    stop = Path(state.stop_file)
    stop.touch()
    loop = loop_over(conninfo, {"effect": ran}, stopped=stop.exists)
    with shared_ledger(conninfo, "sofa") as ledger, serving(worker_over(state, [loop]), state):
        ledger.enqueue("effect", {"key": "later"})
        wait_until(lambda: ledger.worker() is not None, "it is there")
        time.sleep(0.6)
        assert ran.keys == []
        stop.unlink()
        wait_until(lambda: ran.keys == ["later"], "it goes on")


def test_a_server_that_never_answers_delays_neither_start_nor_work_nor_leave(state: StatePaths, ledger: Ledger) -> None:
    ran = Ran()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://me:geheimnis@127.0.0.1:{silent.getsockname()[1]}/queue"
        worker = worker_over(state, [loop_over(url, {})], {"effect": ran})
        ledger.enqueue("effect", {"key": "mine"})
        began = time.monotonic()
        with serving(worker, state):
            wait_until(lambda: ran.keys == ["mine"], "its own work is done", 4.0)
        assert time.monotonic() - began < 4.9  # libpq waits for five.


def test_a_loop_that_was_still_connecting_when_it_was_stopped_starts_again_once(
    conninfo: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, slowly = PostgresLedger.connect, threading.Event()

    def slow_at_first(self: PostgresLedger) -> None:
        if not slowly.is_set():
            slowly.set()
            time.sleep(2.0)
        connect(self)

    monkeypatch.setattr(PostgresLedger, "connect", slow_at_first)
    loop, shared = loop_over(conninfo, {"effect": Ran()}), shared_ledger(conninfo, "sofa", connect=False)
    with shared:
        loop.start(ledger)
        assert slowly.wait(10.0)
        loop.stop()
        loop.start(ledger)
        wait_until(lambda: not loop.is_busy(), "the second start has settled")
        time.sleep(2.0)
        assert listeners(conninfo) == 1
        loop.stop()
        # The server notices a closed connection in its own time.
        wait_until(lambda: listeners(conninfo) == 0, "nobody listens")


def test_a_server_that_stops_answering_is_given_up(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Impatient, "answer_seconds", 0.5)
    conninfo = own.conninfo()
    with shared_ledger(conninfo) as ledger:
        ((pid,),) = ledger.read("SELECT pg_backend_pid()")

        def halted() -> None:
            with ledger.transaction():
                os.kill(pid, signal.SIGSTOP)  # Its kernel still takes what is sent, and answers for it.
                ledger.read("SELECT 1")

        try:
            with pytest.raises(QueueUnavailable, match="no answer within"):
                halted()
            assert ledger.enqueue("effect") == 1, "another connection is answered"
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_machine_that_is_halted_in_mid_transaction_holds_nothing_for_long(
    conninfo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shared_ledger(conninfo) as halted, shared_ledger(conninfo, "sofa") as other:
        ((limit, timeout),) = halted.read("""
            SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')
        """)
        assert "0" not in (limit, timeout)
        halted.read("SELECT set_config('idle_in_transaction_session_timeout', '300ms', false)")

        def in_transaction() -> None:
            with halted.transaction():
                halted.enqueue("effect", {"key": "a"}, unique_key="a")
                assert other.enqueue("effect", {"key": "a"}, unique_key="a") > 0, "the lock is free again"

        with pytest.raises(QueueUnavailable):
            in_transaction()
        assert [job.unique_key for job in halted.list()] == ["a"]


def listeners(conninfo: str) -> int:
    with psycopg.connect(conninfo, autocommit=True) as conn:
        row = conn.execute("""
            SELECT count(*) FROM pg_stat_activity
            WHERE application_name = 'memoryvault desk listens' AND query ILIKE 'listen%'
        """).fetchone()
    assert row is not None
    return int(row[0])
