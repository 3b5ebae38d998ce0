"""huey runs what the ledger lets it claim."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.tasks.queue.app import VaultHuey
from memoryvault.tasks.queue.ledger import Claim, Ledger
from memoryvault.tasks.queue.wakeup import Wakeup
from memoryvault.tests.tasks.support import POLICIES, only_job


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "queue.db", policies=POLICIES) as ledger:
        yield ledger


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
