"""Lists and health say how many sessions wait to be mined, and for how long."""

import re

import pytest

from memoryvault.hooks.wiring import is_wired
from memoryvault.runtime.background import forbid_starts
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.waiting_sessions import SessionFigures, describe_sessions
from memoryvault.tasks.queue.ledger import Ledger

from ..acceptance.test_the_loop import COMMON, SESSION
from ..support.forked import ForkedSandbox
from .conftest import worker_seems_to_run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("queue")]


def end_a_turn(sandbox: ForkedSandbox) -> None:
    transcript = sandbox.projects / f"-p/{SESSION}.jsonl"
    transcript.parent.mkdir(exist_ok=True)
    sandbox.hook("Stop", {**COMMON, "session_id": SESSION, "transcript_path": str(transcript)})


def test_a_list_and_health_say_that_a_session_waits(sandbox: ForkedSandbox) -> None:
    end_a_turn(sandbox)
    told = "1 session waits to be mined (no worker runs: `memory service up`)"
    done = sandbox.run("list")
    assert (done.stdout, done.stderr) == ("no entries match\n", f"memory: {told}\n")
    assert f"sessions         {told}" in sandbox.memory("health").splitlines()
    assert "worker           does not run: `memory service up`" in sandbox.memory("health").splitlines()
    told_programs = sandbox.json("health")["sessions"]
    assert (told_programs["waiting"], told_programs["running"]) == (1, 0)
    assert 0 < told_programs["first_in_seconds"] <= 90
    assert sandbox.run("list", "--json").stderr == ""
    with worker_seems_to_run(sandbox):
        assert re.search(r"waits to be mined \(in about \d+ s\)\n", sandbox.run("list").stderr)


def test_where_hooks_may_start_a_worker_the_next_session_does(sandbox: ForkedSandbox) -> None:
    told = "1 session waits to be mined (no worker runs: {}`memory service up`)"
    settings = load_settings({**sandbox.environment, "MEMORY_AUTOSTART": "true"})
    waits = SessionFigures(1, 9.0, 0)
    assert describe_sessions(waits, settings, wired) == told.format("the next session starts it, or ")
    assert describe_sessions(waits, settings, is_wired) == told.format(""), "no session of an agent knows of it"
    forbid_starts(settings.state)
    assert describe_sessions(waits, settings, wired) == told.format("")


def wired(_: Settings) -> bool:
    return True


def test_a_pause_is_named_instead_of_the_time(sandbox: ForkedSandbox) -> None:
    end_a_turn(sandbox)
    sandbox.memory("jobs", "pause", "reflect.session")
    with worker_seems_to_run(sandbox):
        told = "jobs of this kind are paused: `memory jobs resume reflect.session`"
        assert sandbox.run("list").stderr == f"memory: 1 session waits to be mined ({told})\n"
    sandbox.memory("pause")
    told = "MemoryVault is paused: `memory resume`"
    assert sandbox.run("list").stderr == f"memory: 1 session waits to be mined ({told})\n"


def test_a_queue_that_cannot_be_read_keeps_no_list_from_being_printed(sandbox: ForkedSandbox) -> None:
    queue = sandbox.state / "queue.db"
    queue.unlink()
    assert sandbox.run("list").returncode == 0
    assert not queue.exists(), "looking makes none"
    queue.mkdir()
    assert sandbox.run("list").returncode == 0


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        (SessionFigures(0, None, 1), "1 session is being mined"),
        (SessionFigures(1, 0.2, 0), "1 session waits to be mined (now)"),
        (SessionFigures(2, 4.0, 1), "1 session is being mined, 2 sessions wait to be mined (the first in about 4 s)"),
        (SessionFigures(1, 600.0, 0), "1 session waits to be mined (in about 10 min)"),
    ],
)
def test_sessions_are_described_while_a_worker_runs(sandbox: ForkedSandbox, figures: SessionFigures, told: str) -> None:
    with worker_seems_to_run(sandbox):
        assert describe_sessions(figures, load_settings(sandbox.environment), wired) == told


def test_the_list_of_jobs_shows_what_is_done_or_cancelled_only_if_asked(sandbox: ForkedSandbox) -> None:
    assert sandbox.memory("jobs", "list") == "no job waits, runs or is dead: see --all\n"
    with Ledger(sandbox.state / "queue.db") as ledger:
        for number in range(60):
            ledger.enqueue("recover.orphans", {"slot": str(number)})
            claim = ledger.take(lambda: "somebody", 30.0)
            assert claim is not None
            ledger.complete(claim, {})
            if number == 1:
                end_a_turn(sandbox)
        gone = ledger.enqueue("markers.gc", unique_key="markers.gc")
        ledger.cancel(gone)
        waits = ledger.enqueue("index.reconcile", unique_key="index.reconcile")
    printed = sandbox.memory("jobs", "list")
    assert re.findall(r"^\d+ +(\S+[.]\S+) +(\S+)", printed, re.MULTILINE) == [
        ("reflect.session", "queued"), ("index.reconcile", "queued"),
    ]  # fmt: skip
    assert len(sandbox.memory("jobs", "list", "--all", "--limit", "100").splitlines()) == 1 + 63
    assert len(sandbox.json("jobs", "list", "--limit", "100")) == 63, "a program gets all"
    assert str(gone) in sandbox.memory("jobs", "list", "--state", "cancelled")
    assert "recover.orphans" in sandbox.memory("jobs", "list", "--kind", "recover.orphans")
    sandbox.memory("jobs", "cancel", str(waits))
