"""Jobs, acted on by the functions of the commands; and the page of health."""

import fcntl
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from memoryvault.console.times import ago, lasting, size, when_iso
from memoryvault.runtime.layout import StatePaths, leave_socket_folder, make_socket_folder
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.review.support import Bed

from .support import Front, said, visible
from .vaults import pattern


def dead_job(bed: Bed) -> int:
    with open_ledger(bed.settings) as ledger:
        job = ledger.enqueue("research.idea", {"slug": "tides"})
        claim = ledger.take(lambda: "a", 60)
        assert claim is not None
        assert claim.job_id == job
        ledger.bury(claim, "HTTP 503 <script>")
    return job


def queued_job(bed: Bed, session: str = "s1") -> int:
    with open_ledger(bed.settings) as ledger:
        return ledger.enqueue("reflect.session", {"session": session}, delay_seconds=600)


def state_of(bed: Bed, job: int) -> str:
    with open_ledger(bed.settings) as ledger:
        return ledger.get(job).state


def ids(page: str) -> list[int]:
    return [int(found) for found in re.findall(r'id="job-(\d+)"', page)]


def test_what_runs_waits_or_is_dead_is_listed_and_what_ended_is_not(bed: Bed, front: Front) -> None:
    dead, queued = dead_job(bed), queued_job(bed)
    with open_ledger(bed.settings) as ledger:
        ledger.cancel(ledger.enqueue("embed.drain"))
        running = ledger.enqueue("index.reconcile")
        claim = ledger.take(lambda: "a", 600)
        assert claim is not None
        assert claim.job_id == running
    page = front.get("jobs")
    assert ids(page.text) == [running, queued, dead]
    assert "HTTP 503 <script>" in visible(page)
    assert "<script>" not in page.text.replace("<script src", "")


def test_the_page_says_when_not_all_dead_jobs_are_listed(bed: Bed, front: Front) -> None:
    insert = "INSERT INTO job (kind, args, state, run_at, created_at) VALUES ('index.reconcile', '{}', 'dead', 1, 1)"
    with open_ledger(bed.settings) as ledger, ledger.transaction() as conn:
        conn.executemany(insert, [()] * 100)
    assert "the newest" not in visible(front.get("jobs"))
    with open_ledger(bed.settings) as ledger, ledger.transaction() as conn:
        conn.execute(insert)
    page = front.get("jobs")
    assert len(ids(page.text)) == 100
    assert "Dead jobs: the newest 100 of 101." in visible(page)


def test_a_job_is_retried_and_cancelled_as_it_was_seen(bed: Bed, front: Front) -> None:
    assert "retry-all" not in front.get("jobs").text
    job = dead_job(bed)
    assert said(front.post("jobs/act", do="retry", name=str(job))) == f"job {job} (research.idea) is queued again"
    assert state_of(bed, job) == "queued"
    assert "only dead and cancelled ones can be retried" in said(front.post("jobs/act", do="retry", name=str(job)))
    refused = front.post("jobs/act", do="cancel", name=str(job), state="running")
    assert said(refused) == f"job {job} is queued by now: nothing was done, decide again"
    front.post("jobs/act", do="cancel", name=str(job), state="queued")
    assert state_of(bed, job) == "cancelled"
    dead = [dead_job(bed) for _ in range(2)]
    assert said(front.post("jobs/act", do="retry-all")) == "2 dead jobs are queued again"
    assert [state_of(bed, one) for one in (*dead, job)] == ["queued", "queued", "cancelled"]


@pytest.mark.parametrize(("do", "name"), [("explode", "1"), ("retry", "x"), ("cancel", "4711")])
def test_what_is_nothing_to_do_is_refused(front: Front, do: str, name: str) -> None:
    answer = front.post("jobs/act", do=do, name=name)
    assert answer.status_code == 200
    assert 'class="said problem"' in answer.text


def test_an_empty_vault_is_well(front: Front) -> None:
    text = visible(front.get("health"))
    assert "All is well. No worker runs now: memory service up" in text


def test_patterns_that_wait_are_told_with_the_command_that_decides_on_them(bed: Bed, front: Front) -> None:
    pattern(bed, "plan-first")
    assert "For you: 1 pattern to adopt (memory skills watchlist)" in visible(front.get("health"))


@contextmanager
def hanging_service(state: StatePaths) -> Iterator[None]:
    """A recall service that says it is process 4711, is connected to, and answers nothing."""
    state.ensure()
    make_socket_folder(state.recall_socket)
    with socket.socket(socket.AF_UNIX) as silent, open(state.recall_lock, "w") as lock:
        silent.bind(state.recall_socket)
        silent.listen()
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        yield
    leave_socket_folder(state.recall_socket)


def test_a_recall_service_that_hangs_is_not_said_to_run(bed: Bed, front: Front) -> None:
    with hanging_service(bed.settings.state):
        assert "Recall service does not answer process 4711" in visible(front.get("health"))


def test_without_the_vault_the_page_shows_the_rest(bed: Bed, front: Front) -> None:
    bed.vault.rmdir()
    assert "Hooks of the last" in visible(front.get("health"))


def test_times_and_sizes_are_short() -> None:
    assert [ago(at, 1000.0) for at in (None, 0.0, 990.0, 1180.0)] == ["–", "–", "10 s ago", "in 3 min"]
    assert [lasting(s) for s in (0.42, 59, 600, 9000, 999_999)] == ["0.4 s", "59 s", "10 min", "2 h", "12 days"]
    assert [size(n) for n in (12, 4_000, 5_600_000)] == ["12 bytes", "4 kB", "5.6 MB"]
    assert [when_iso(text) for text in ("2026-05-04", "soon", None)] == ["4 May 2026", "soon", "–"]
