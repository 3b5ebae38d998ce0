"""`memory jobs list` and `memory jobs schedule` for a user."""

import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.queue.kinds import POLICIES
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.tasks.support import wait_until


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> ForkedSandbox:
    sandbox = ForkedSandbox(tmp_path_factory.mktemp("jobs"))
    sandbox.memory("jobs", "list")
    return sandbox


@pytest.fixture
def ledger(sandbox: ForkedSandbox) -> Iterator[Ledger]:
    with Ledger(sandbox.state / "queue.db") as ledger:
        yield ledger


def killed(ledger: Ledger, key: str) -> int:
    """A job that failed once and then died. What other tests have left in the queue is cancelled."""
    for left in ledger.list_jobs(["queued"]):
        ledger.cancel(left.id)
    job_id = ledger.enqueue("recover.orphans", {"slot": key}, unique_key=key)
    claim = ledger.take(lambda: "somebody", 30.0)
    assert claim is not None
    ledger.fail(claim, "no luck", after_seconds=0.0)
    claim = ledger.take(lambda: "somebody", 30.0)
    assert claim is not None
    ledger.bury(claim, "out of luck")
    return job_id


def test_kinds_prints_every_limit(sandbox: ForkedSandbox) -> None:
    printed = sandbox.memory("jobs", "kinds")
    assert all(kind in printed for kind in POLICIES)
    rows = {row["kind"]: row for row in sandbox.json("jobs", "kinds")}
    assert rows["reflect.session"] == {
        "kind": "reflect.session", "priority": 10, "concurrency": 2, "deadline_seconds": 480, "attempts": 5,
        "backoff_base_seconds": 10, "backoff_cap_seconds": 1800, "in_child": True, "paused": False,
    }  # fmt: skip


def test_a_dead_job_is_shown_with_its_history_and_retried_with_it(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    job_id = killed(ledger, "one")
    shown = sandbox.memory("jobs", "show", str(job_id))
    assert "no luck" in shown
    assert "out of luck" in shown
    assert sandbox.json("jobs", "retry", str(job_id))["state"] == "queued"
    job = ledger.get(job_id)
    assert (job.state, job.attempt) == ("queued", 0)
    assert [step["outcome"] for step in job.history] == ["failed", "dead"]
    sandbox.refused("jobs", "retry", str(job_id))


def test_the_list_names_what_each_job_works_on(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    session = "8c0f2c1e-51a0-4b0e-9b6c-0d2f8a9f1b22"
    ledger.enqueue("reflect.session", {"session": session}, unique_key=f"reflect.session:{session}")
    ledger.enqueue("index.reconcile", unique_key="index.reconcile")
    title, *rows = sandbox.memory("jobs", "list", "--state", "queued").splitlines()
    at = title.index(" of ") + 1
    told = {row.split()[1]: row[at : at + len(session)].strip() for row in rows}
    assert (told["reflect.session"], told["index.reconcile"]) == (session, "")


def test_jobs_and_schedules_tell_times_alike_in_the_zone_of_the_machine(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    job_id = ledger.enqueue("recover.orphans", unique_key="told")
    ledger.cancel(job_id)
    made = datetime.fromtimestamp(ledger.get(job_id).created_at, ZoneInfo("Asia/Tokyo"))
    zone = {"TZ": "Asia/Tokyo"}
    # In a process of its own: one that is forked keeps the zone of this one.
    listed, shown, schedules = (
        Sandbox.run(sandbox, "jobs", *words, env=zone).stdout
        for words in (("--all",), ("show", str(job_id)), ("schedule",))
    )
    assert all(f"{made:%a %Y-%m-%d %H:%M:%S}" in told for told in (listed, shown))
    assert re.search(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d 04:20:00", schedules)
    assert sandbox.json("jobs", "show", str(job_id))["created_at"].endswith("Z"), "programs are told UTC"


def test_all_dead_jobs_are_retried_but_none_beside_its_like(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    first, second = killed(ledger, "two"), killed(ledger, "three")
    waiting = ledger.enqueue("recover.orphans", unique_key="three")
    done = sandbox.run("jobs", "retry", "all", "--kind", "recover.orphans")
    assert done.returncode == 0
    assert "1 job is queued again, 1 is waiting already" in done.stdout
    assert [ledger.get(job).state for job in (first, second, waiting)] == ["queued", "dead", "queued"]
    assert sandbox.json("jobs", "cancel", str(waiting))["state"] == "cancelled"


def test_a_paused_kind_says_so_until_it_is_resumed(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    assert sandbox.json("jobs", "pause", "reflect.corpus") == {"kind": "reflect.corpus", "paused": True}
    assert ledger.paused() == ["reflect.corpus"]
    assert "paused" in sandbox.memory("jobs", "kinds")
    assert sandbox.json("jobs", "resume", "reflect.corpus") == {"kind": "reflect.corpus", "paused": False}


def test_a_schedule_run_while_its_kind_is_paused_says_how_to_resume_it(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    told = "held: `memory jobs resume discover.scan`"
    assert told not in sandbox.run("jobs", "schedule", "run", "discovery").stderr
    ledger.pause("discover.scan")
    for words in ((), ("--json",)):
        assert told in sandbox.run("jobs", "schedule", "run", "discovery", *words).stderr


@pytest.mark.slow
def test_schedules_have_last_and_next_times_and_can_be_run(sandbox: ForkedSandbox, ledger: Ledger) -> None:
    assert {"discovery", "incubator-gc", "markers-gc", "idle-sweep", "inbox-triage", "index-reconcile",
            "logs-rotate"} <= {row["name"] for row in sandbox.json("jobs", "schedule")}  # fmt: skip
    job = sandbox.json("jobs", "schedule", "run", "markers-gc")["job"]
    assert ledger.get(job).kind == "markers.gc"
    ledger.pause("recover.orphans")
    rows = {row["name"]: row for row in sandbox.json("jobs", "schedule")}
    assert (rows["idle-sweep"]["paused"], rows["idle-sweep"]["next"]) == (True, None)
    assert rows["markers-gc"]["next"] > time.strftime("%Y-%m-%d")
    assert sandbox.run("jobs", "schedule", "run", "nope").returncode == 2


@pytest.mark.slow
def test_waiting_for_another_worker_tells_that_it_did_the_work(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path)
    sandbox.memory("jobs", "list")
    with sandbox.process("service", "worker"):
        wait_until(Path(StatePaths(sandbox.state).wake_socket).exists, "the worker runs")
        told = sandbox.memory("service", "worker", "--until-idle")
    assert told.startswith("the worker that was already running did it")
