"""Progress of long commands is shown at a terminal only."""

import os
import pty
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from memoryvault.cli.doctor import CHECKS
from memoryvault.cli.progress import NAMES, progress_line
from memoryvault.runtime.lock import hold_lock
from memoryvault.runtime.settings import load_settings
from memoryvault.tasks.jobs.wiring import HANDLERS
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.progress import REPORT_SECONDS, RunProgress
from memoryvault.tests.corpus.sessions import RULE, old_session
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.tests.support.terminal import Terminal
from memoryvault.tests.tasks.support import wait_until

AT_MOST_SECONDS = 20.0
"""Less than a command waits for the vault's lock, which tests take from it."""


def rows(text: str) -> list[str]:
    """The lines as they stand when they are written: of a line that was written again its last state."""
    return [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize("at", [os.pipe, pty.openpty], ids=["pipe", "terminal"])
def test_doctor_tells_each_finding_when_it_has_it(sandbox: Sandbox, at: Callable[[], tuple[int, int]]) -> None:
    sandbox.memory("jobs", "list")
    *before, last = [what for what, _ in CHECKS]
    assert last == "round trip"
    with hold_lock(sandbox.state / "run" / "vault.lock"):
        doctor = Terminal(sandbox, ("doctor",), at)
        doctor.expect("stay on this machine", AT_MOST_SECONDS)
        doctor.expect("\n", AT_MOST_SECONDS)
        head, *told = rows(doctor.text)
        assert doctor.process.poll() is None
        assert head.split() == ["what", "found"]
        assert [line[6:22].strip() for line in told if not line.startswith("testing")][: len(before)] == before
        if at is pty.openpty:
            doctor.expect("testing: round trip", AT_MOST_SECONDS)
        doctor.process.kill()
    assert ("testing" in doctor.text) == (at is pty.openpty)


# ---- the worker that is waited for

WORKER = ("service", "worker", "--until-idle", "--timeout", "120")


@pytest.fixture
def backfill(sandbox: Sandbox) -> Sandbox:
    """Three old sessions are to be mined."""
    for number in range(3):
        old_session(sandbox.projects / "-home-dev-shop", number, RULE)
    sandbox.memory("reflect", "corpus", "--execute")
    return sandbox


@pytest.mark.slow
def test_a_worker_that_is_waited_for_shows_at_a_terminal_what_it_is_at(backfill: Sandbox) -> None:
    with hold_lock(backfill.state / "run" / "vault.lock"):
        worker = Terminal(backfill, WORKER)
        worker.expect("left: 3 sessions to mine", AT_MOST_SECONDS)
        assert worker.process.poll() is None
        assert "\n" not in worker.text, "one line, written again"
    worker.rest()
    *kept, last = rows(worker.text)
    assert last == "", "nothing is left of it"
    assert not [line for line in kept if "working" in line]
    assert [line.split()[0] for line in kept] == ["memory:", worker_counts(kept), "due"]


def worker_counts(kept: list[str]) -> str:
    """The number with which the line of counts begins."""
    return next(line.split()[0] for line in kept if " done" in line)


@pytest.mark.slow
def test_scripts_and_logs_do_not_see_that(backfill: Sandbox) -> None:
    with hold_lock(backfill.state / "run" / "vault.lock"):
        worker = Terminal(backfill, WORKER, os.pipe)
        wait_until(lambda: running(backfill) == ["reflect.corpus"], "it waits for the lock")
        time.sleep(2 * REPORT_SECONDS)
    text = worker.rest()
    assert "working" not in text
    assert "\r" not in text


def running(sandbox: Sandbox) -> list[str]:
    return [job["kind"] for job in sandbox.json("jobs", "list", "--state", "running")]


def test_the_progress_line_names_jobs_in_the_users_terms() -> None:
    left = {"logs.rotate": 1, "markers.gc": 1, "reflect.corpus": 1200, "reflect.session": 1}
    assert progress_line(RunProgress(34.4, 5, left)) == (
        "working for 34 s: 5 done, left: 1,201 sessions to mine, 2 others"
    )
    assert progress_line(RunProgress(2.0, 5, {})) == "working for 2 s: 5 done, ending"
    assert progress_line(RunProgress(2.0, 0, {"research.idea": 2}, elsewhere=True)) == (
        "the worker that is running works for 2 s: left: 2 ideas to look up"
    )
    assert NAMES.keys() <= HANDLERS.keys()


def test_a_worker_that_ends_says_what_is_due_later_and_when(sandbox: Sandbox) -> None:
    sandbox.memory("jobs", "list")
    hour = timedelta(hours=1)
    with open_ledger(load_settings(sandbox.environment)) as ledger:
        ledger.enqueue("research.idea", {"slug": "a"}, delay_seconds=2 * hour.total_seconds())
        ledger.enqueue("research.idea", {"slug": "b"}, delay_seconds=hour.total_seconds())
        ledger.enqueue("discover.scan", delay_seconds=hour.total_seconds())
        ledger.pause("discover.scan")
    (later,) = sandbox.json(*WORKER)["later"]
    assert (later["kind"], later["jobs"]) == ("research.idea", 2)
    assert timedelta() < datetime.fromisoformat(later["first_at"]) - datetime.now(UTC) <= hour
    counts, line = sandbox.memory(*WORKER).splitlines()
    assert counts.endswith("3 delayed")
    assert line.startswith("due later: 2 ideas to look up (from ")
    assert "source" not in line, "no worker does what is paused"


def test_a_worker_whose_time_is_over_says_that_something_is_left(sandbox: Sandbox) -> None:
    sandbox.memory("jobs", "list")
    done = sandbox.run(*WORKER[:3], "--timeout", "0")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("memory: it ended before all was done")
