"""The worker in this process: huey's consumer with real threads, and handlers of the tests."""

import errno
import json
import logging
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from memoryvault import __version__
from memoryvault.runtime.errors import MemoryVaultError, VaultUnavailable, WorkerRunning
from memoryvault.runtime.layout import StatePaths
from memoryvault.schedules.table import Schedule
from memoryvault.tasks.queue.app import VaultHuey
from memoryvault.tasks.queue.job import Dead, Handler, Postpone, Retry, RunningJob
from memoryvault.tasks.queue.kinds import Json
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.records import Claim
from memoryvault.tasks.queue.wakeup import Wakeup, wake_worker
from memoryvault.tasks.queue.worker import (
    RunReport,
    Service,
    Worker,
    WorkerContext,
    installed_version,
    is_newer,
)
from memoryvault.tasks.queue.worklog import JsonLines
from memoryvault.tests.tasks.support import POLICIES, is_alive, only_job, pid_in, wait_until


def context(state: StatePaths, schedules: Sequence[Schedule] = ()) -> WorkerContext:
    """Two threads, short times."""
    return WorkerContext(
        state, poll_seconds=0.2, lease_seconds=3.0, drain_seconds=5.0, policies=POLICIES, schedules=schedules
    )


def run(state: StatePaths, handler: Handler, *, kind: str = "effect") -> RunReport:
    """Run until idle with one handler."""
    return Worker(context(state), {kind: handler}).run_until_idle(60.0)


@contextmanager
def serving(
    setting: WorkerContext, handlers: Mapping[str, Handler], services: Sequence[Service] = ()
) -> Iterator[Worker]:
    """A worker that serves in a thread of its own."""
    worker = Worker(setting, handlers, services)
    thread = threading.Thread(target=worker.run_forever)
    thread.start()
    try:
        wait_until(lambda: Path(setting.state.wake_socket).exists(), "the worker has started")
        yield worker
    finally:
        worker.leave()
        thread.join(timeout=60.0)
        assert not thread.is_alive()


def nothing(job: RunningJob) -> None:
    """A handler that does nothing."""


def raising(error: BaseException) -> Handler:
    def handler(job: RunningJob) -> Mapping[str, Json] | None:
        raise error

    return handler


def test_worker_runs_all_due_jobs_and_their_follow_ups(state: StatePaths, ledger: Ledger) -> None:
    order: list[Json] = []

    def handler(job: RunningJob) -> Mapping[str, Json]:
        order.append(job.args["key"])
        if job.args["key"] == "a":
            job.enqueue("effect", {"key": "b"}, unique_key="b")
            job.enqueue("effect", {"key": "later"}, unique_key="later", delay_seconds=60)
        return {"files": 1}

    ledger.enqueue("effect", {"key": "a"})
    (Path(state.spool) / "1-1.json").write_text(json.dumps({"kind": "effect", "args": {"key": "spooled"}}))
    report = run(state, handler)
    assert sorted(map(str, order)) == ["a", "b", "spooled"]
    assert (report.done, report.delayed, report.timed_out) == (3, 1, False)
    assert [job.history[0]["result"] for job in ledger.list_jobs(["done"])] == [{"files": 1}] * 3


def test_worker_can_run_jobs_in_their_quiet_period(state: StatePaths, ledger: Ledger) -> None:
    ledger.enqueue("effect", delay_seconds=90)
    ledger.enqueue("effect", delay_seconds=9000)
    report = Worker(context(state), {"effect": nothing}).run_until_idle(60.0, include_delayed_seconds=100.0)
    assert (report.done, report.delayed) == (1, 1)


def test_due_schedules_of_handled_kinds_run(state: StatePaths, ledger: Ledger) -> None:
    schedules = [
        Schedule("sweep", "* * * * *", "effect", first="now"),
        Schedule("weekly", "0 3 * * 0", "effect"),
        Schedule("unhandled", "* * * * *", "single", first="now"),
    ]
    report = Worker(context(state, schedules), {"effect": nothing}).run_until_idle(10.0)
    assert report.done == 1
    assert str(only_job(ledger).unique_key).startswith("sweep:")


@pytest.mark.parametrize(
    ("error", "outcome", "state_after", "message"),
    [
        (Retry("busy", after_seconds=60), "failed", "queued", "busy"),
        (Dead("hopeless"), "dead", "dead", "hopeless"),
        (Postpone("no model", 60), "postponed", "queued", "no model"),
        (VaultUnavailable("not mounted"), "postponed", "queued", "not mounted"),
        (OSError(errno.ENOSPC, "full"), "postponed", "queued", "OSError: [Errno 28] full"),
        (SystemExit(3), "failed", "queued", "SystemExit: 3"),
        (ValueError("a bug\nof two lines"), "failed", "queued", "ValueError: a bug of two lines"),
    ],
)
def test_how_a_handler_fails_decides_what_becomes_of_the_job(
    state: StatePaths,
    ledger: Ledger,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    outcome: str,
    state_after: str,
    message: str,
) -> None:
    slow = {"effect": replace(POLICIES["effect"], backoff_base_seconds=60, backoff_cap_seconds=60)}
    ledger.enqueue("effect")
    setting = replace(context(state), policies=slow)
    report = Worker(setting, {"effect": raising(error)}).run_until_idle(10.0)
    job = only_job(ledger)
    assert (job.state, job.error) == (state_after, message)
    assert [entry["outcome"] for entry in job.history] == [outcome]
    assert job.attempt == (0 if outcome == "postponed" else 1)
    assert (report.dead, report.delayed) == (int(state_after == "dead"), int(state_after == "queued"))
    assert (f"job {job.id} (effect) failed for good: {message}" in caplog.messages) is (state_after == "dead")


def test_jobs_that_nobody_can_run_are_kept_as_dead_and_have_a_line_in_the_log(
    state: StatePaths, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ids = [*(ledger.enqueue("effect") for _ in range(3)), ledger.enqueue("single")]
    with ledger.transaction() as conn:
        conn.execute("UPDATE job SET kind = 'gone' WHERE id = ?", (ids[0],))
        conn.execute("UPDATE job SET args = '{' WHERE id = ?", (ids[1],))
        conn.execute("""UPDATE job SET args = '{"key":1}' WHERE id = ?""", (ids[2],))
    assert run(state, nothing).dead == 4
    errors = [ledger.get(job).error or "" for job in ids]
    assert errors[0] == "this version has no job kind 'gone'"
    assert errors[1].startswith("arguments are not JSON")
    assert errors[2] == "effect: key is not a text: '1'"
    assert errors[3] == "this version has no job kind 'single'"
    assert f"job {ids[3]} (single) failed for good: {errors[3]}" in caplog.messages


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_ignored_from_the_start_stays_so(state: StatePaths, ledger: Ledger, number: signal.Signals) -> None:
    """`nohup memory service worker &` outlives the terminal."""

    def hung_up(job: RunningJob) -> None:
        os.kill(os.getpid(), number)
        time.sleep(0.5)  # The main thread hears of it.

    for key in ("a", "b"):
        ledger.enqueue("single", {"key": key})
    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert run(state, hung_up, kind="single").done == 2
    finally:
        signal.signal(number, before)


def test_a_second_worker_is_refused_in_one_line_and_waits_when_asked_to(state: StatePaths, ledger: Ledger) -> None:
    with serving(context(state), {"effect": nothing}):
        wait_until(ledger.worker, "the worker beats")
        with pytest.raises(WorkerRunning, match=rf"already running .*pid {os.getpid()}.*`kill {os.getpid()}` ends"):
            Worker(context(state), {}).run_forever()
        ledger.enqueue("effect", delay_seconds=50)
        assert Worker(context(state), {}).run_until_idle(60.0, include_delayed_seconds=60.0).elsewhere
        assert only_job(ledger).state == "done"


def test_progress_tells_what_is_left(state: StatePaths, ledger: Ledger) -> None:
    told: list[int] = []
    go_on = threading.Event()

    def tell(left: int) -> None:
        told.append(left)
        go_on.set()

    def handler(job: RunningJob) -> None:
        if job.args["key"] == "b":
            go_on.wait(60.0)

    setting = replace(context(state), workers=1)
    for key in "abc":
        ledger.enqueue("single", {"key": key})
    ledger.enqueue("effect", delay_seconds=600)
    ledger.pause("effect")
    report = Worker(setting, {"single": handler, "effect": nothing}).run_until_idle(60.0, on_left=tell)
    assert told == [2]
    assert report.delayed == 1, "it is the user's to let it go on"
    go_on.clear()
    told.clear()
    with serving(setting, {"single": handler}):
        wait_until(ledger.worker, "the worker beats")
        ledger.enqueue("single", {"key": "b"})
        assert Worker(setting, {}).run_until_idle(60.0, on_left=tell).elsewhere
    assert told == [1]


def sleeper(folder: Path) -> tuple[Path, Handler]:
    """A handler whose child sleeps, and the file in which it writes its pid."""
    pid_file = folder / "pid"
    program = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    def handler(job: RunningJob) -> None:
        job.run_child([sys.executable, "-c", program], env={})

    return pid_file, handler


def test_a_cancelled_job_loses_its_child(state: StatePaths, ledger: Ledger, tmp_path: Path) -> None:
    pid_file, handler = sleeper(tmp_path)
    with serving(context(state), {"effect": handler}):
        job_id = ledger.enqueue("effect")
        pid = pid_in(pid_file)
        ledger.cancel(job_id)
        wait_until(lambda: not is_alive(pid), "the child is gone")
    assert only_job(ledger).state == "cancelled"


def test_a_child_past_its_deadline_is_an_attempt_that_failed(state: StatePaths, ledger: Ledger, tmp_path: Path) -> None:
    ledger.enqueue("hasty")
    assert run(state, sleeper(tmp_path)[1], kind="hasty").retried == 1
    assert only_job(ledger).error == "killed at its deadline of 0 s"


def test_a_handler_past_its_deadline_loses_the_job_and_its_result(
    state: StatePaths, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryvault.tasks.queue.job.LATE_SECONDS", 0.1)
    still_owned: list[bool] = []

    def handler(job: RunningJob) -> None:
        job.lost.wait(8.0)
        still_owned.append(job.still_owned())

    ledger.enqueue("hasty")
    setting = replace(context(state), lease_seconds=0.6)
    Worker(setting, {"hasty": handler}).run_until_idle(60.0)
    assert still_owned[0] is False
    assert only_job(ledger).history[0]["error"] == "did not end at its deadline of 0 s"


def test_leaving_it_stops_children_and_gives_jobs_back(state: StatePaths, ledger: Ledger, tmp_path: Path) -> None:
    pid_file, handler = sleeper(tmp_path)
    with serving(replace(context(state), drain_seconds=0.2), {"effect": handler}):
        ledger.enqueue("effect")
        pid = pid_in(pid_file)
    assert not is_alive(pid)
    job = only_job(ledger)
    assert (job.state, job.attempt) == ("queued", 0)
    assert job.history[0]["outcome"] == "released"


def test_a_newer_schema_makes_it_leave(state: StatePaths, ledger: Ledger) -> None:
    with serving(context(state), {"effect": nothing}):
        wait_until(ledger.worker, "the worker beats")
        with ledger.transaction() as conn:
            conn.execute("PRAGMA user_version = 99")
        wait_until(lambda: not Path(state.wake_socket).exists(), "it has left", 30.0)


def test_services_live_as_long_as_the_worker(state: StatePaths) -> None:
    events: list[str] = []

    def watch(ledger: Ledger) -> Callable[[], None]:
        events.append("start")
        return lambda: events.append("stop")

    with serving(context(state), {}, [watch]):
        wait_until(lambda: events == ["start"], "it has been started")
    assert events == ["start", "stop"]


def test_work_goes_on_after_the_file_was_locked(
    state: StatePaths, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    proceed = threading.Event()

    def handler(job: RunningJob) -> None:
        proceed.wait(60)

    monkeypatch.setattr("memoryvault.tasks.queue.worker.BUSY_SECONDS", 0.2)
    with serving(replace(context(state), lease_seconds=60.0), {"effect": handler}):
        job_id = ledger.enqueue("effect")
        wait_until(lambda: ledger.get(job_id).state == "running", "the first runs")
        with ledger.transaction():
            second = ledger.enqueue("effect")
            proceed.set()
            time.sleep(1.0)  # Its end can't be recorded, no message taken, nothing reconciled.
            assert ledger.get(job_id).state == "running"
        for job in (job_id, second):
            wait_until(lambda job=job: ledger.get(job).state == "done", "it is done")  # type: ignore[misc]
    assert [job.attempt for job in ledger.list_jobs()] == [1, 1]


# The worker's socket is only a hint to look for work, whoever sends to it


NONSENSE = (b"", b"\0" * 60_000, b"\xff\xfe 1", b"1 nonsense", b"1 0.0.1", b"1 \x1b[2J9.9", b'{"op": "stop"}', b"stop")


def test_only_the_user_can_ring(state: StatePaths) -> None:
    wakeup = Wakeup(state.wake_socket)
    wakeup.open()
    try:
        assert stat.S_IMODE(os.stat(state.wake_socket).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(state.wake_socket)).st_mode) == 0o700
    finally:
        wakeup.close()


@pytest.mark.slow
def test_a_datagram_wakes_the_worker_and_does_nothing_else(state: StatePaths) -> None:
    """Except one that names a newer version: the worker leaves for it, which is how an upgrade takes over."""
    setting = WorkerContext(state, poll_seconds=30.0, policies=POLICIES, schedules=())
    with Ledger(state.queue_db, policies=POLICIES) as ledger, serving(setting, {"effect": nothing}):
        for words in NONSENSE:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.sendto(words, state.wake_socket)
            job = ledger.enqueue("effect", {"key": f"after {words[:20]!r}"})
            wake_worker(state.wake_socket)
            # B023: the closure is waited for within the turn
            wait_until(lambda: ledger.get(job).state == "done", f"a job is done after {words[:20]!r}")  # noqa: B023
        assert not any(astuple(ledger.backlog())), "no job came of any of them"
        wake_worker(state.wake_socket, "999.0")
        wait_until(lambda: not Path(state.wake_socket).exists(), "it makes room for a newer one")


def test_huey_runs_a_due_job_once_and_stores_nothing(tmp_path: Path, ledger: Ledger) -> None:
    ran: list[Claim] = []
    wakeup = Wakeup(tmp_path / "wake.sock")
    huey = VaultHuey(ran.append, lambda: ledger.take(lambda: "me", 30.0), wakeup, poll_seconds=0.01)
    job_id = ledger.enqueue("effect", {"key": "a"})
    task = huey.dequeue()
    assert only_job(ledger).state == "running"
    huey.execute(task)
    assert [(claim.job_id, claim.attempt, claim.owner) for claim in ran] == [(job_id, 1, "me")]
    assert huey.dequeue() is None
    assert huey.result_count() == huey.pending_count() == 0


# The log of a worker that runs for months: a lost stderr does not stop a job


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), BrokenPipeError(), MemoryVaultError("no output")])
def test_a_warning_that_cannot_be_told_stands_in_the_file_and_stops_nobody(tmp_path: Path, error: Exception) -> None:
    def refuse(line: str) -> None:
        raise error

    log = logging.getLogger("memoryvault.test-worklog")
    handler = JsonLines(str(tmp_path / "log"), refuse)
    log.addHandler(handler)
    try:
        log.warning("the disk is full")
    finally:
        log.removeHandler(handler)
    assert "the disk is full" in (tmp_path / "log").read_text("utf-8")


# Old and new versions side by side: the older one leaves


def test_versions_are_compared_by_their_numbers(tmp_path: Path) -> None:
    assert is_newer("0.10.0", than="0.9.9")
    assert is_newer("1.0.0rc1", than="0.9")
    for other in ("0.9.9", "0.9.8", "", "nonsense", "-1"):
        assert not is_newer(other, than="0.9.9")
    assert installed_version() == __version__
    assert installed_version(tmp_path / "being-replaced.py") == __version__


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["client", "package"])
def test_a_worker_finishes_what_it_runs_and_leaves_when_a_newer_version_comes(
    state: StatePaths, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, proceed = threading.Event(), threading.Event()

    def handler(job: object) -> None:
        begun.set()
        proceed.wait(60)

    setting = WorkerContext(state, workers=1, poll_seconds=0.1, lease_seconds=1.0, policies=POLICIES, schedules=())
    with Ledger(state.queue_db, policies=POLICIES) as ledger, serving(setting, {"effect": handler}) as worker:
        first, second = ledger.enqueue("effect"), ledger.enqueue("effect")
        assert begun.wait(60)
        wake_worker(state.wake_socket, __version__)
        wake_worker(state.wake_socket, "0.0.1")
        time.sleep(0.3)
        assert not worker._leaving, "its own version and an older one change nothing"
        if sign == "client":
            wake_worker(state.wake_socket, "999.0")
        else:
            monkeypatch.setattr("memoryvault.tasks.queue.worker.installed_version", lambda: "999.0")
        wait_until(lambda: worker._leaving, "it has noticed")
        proceed.set()
        wait_until(lambda: not Path(state.wake_socket).exists(), "it has left")
        assert (ledger.get(first).state, ledger.get(second).state) == ("done", "queued")
