"""Messages of huey: JSON only, and only our own."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from huey.registry import Message

from memoryvault.tasks.queue.app import Claiming, JsonSerializer, VaultHuey
from memoryvault.tasks.queue.ledger import Claim, Ledger
from memoryvault.tasks.queue.wakeup import Wakeup
from memoryvault.tests.tasks.support import POLICIES, only_job


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "queue.db", policies=POLICIES) as ledger:
        yield ledger


@pytest.fixture
def ran() -> list[Claim]:
    return []


@pytest.fixture
def huey(tmp_path: Path, ledger: Ledger, ran: list[Claim]) -> Iterator[VaultHuey]:
    huey = VaultHuey(
        ran.append,
        ledger=ledger,
        claiming=Claiming(
            Wakeup(tmp_path / "wake.sock"), lambda: "me", lease_seconds=30.0, poll_seconds=0.01, closed=lambda: False
        ),
    )
    yield huey
    huey.storage.close()


def test_a_job_is_run_by_the_task_of_its_message(huey: VaultHuey, ledger: Ledger, ran: list[Claim]) -> None:
    job_id = ledger.enqueue("effect", {"key": "a"})
    task = huey.dequeue()
    assert huey._registry.task_to_string(type(task)) == "memoryvault.run"
    assert only_job(ledger).state == "running"
    huey.execute(task)
    assert [(claim.job_id, claim.attempt, claim.owner) for claim in ran] == [(job_id, 1, "me")]
    assert huey.dequeue() is None


def test_a_message_as_a_hook_writes_it_is_run_and_one_of_another_version_too(
    huey: VaultHuey, ledger: Ledger, ran: list[Claim]
) -> None:
    job_id = ledger.enqueue("effect")
    for extra in ("", ',"from_the_future":1'):
        message = f'{{"id":"{"0" * 32}","name":"memoryvault.run","args":[{job_id}]{extra}}}'
        with ledger.transaction() as conn:
            conn.execute("UPDATE task SET data = ?", (message.encode(),))
        huey.execute(huey.dequeue())
        ledger.release(ran[-1])
    assert len(ran) == 2


def test_a_message_put_in_by_huey_itself_rings_too(huey: VaultHuey, ledger: Ledger, ran: list[Claim]) -> None:
    job_id = ledger.enqueue("effect")
    with ledger.transaction() as conn:
        conn.execute("DELETE FROM task")
    run = huey._registry.string_to_task("memoryvault.run")
    huey.enqueue(run((job_id,)))
    assert [task.args for task in huey.pending()] == [(job_id,)]
    huey.execute(huey.dequeue())
    assert len(ran) == 1


def test_pickle_is_neither_written_nor_read(huey: VaultHuey, ledger: Ledger, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "exploded"))
    with ledger.transaction() as conn:
        conn.execute("INSERT INTO task (queue, data) VALUES ('memoryvault', ?)", (bomb,))
    assert huey.dequeue() is None
    assert huey.pending_count() == 0
    with pytest.raises(ValueError):
        JsonSerializer().deserialize(bomb)
    with pytest.raises(TypeError, match="only huey messages"):
        JsonSerializer().serialize({"any": "thing"})
    assert not (tmp_path / "exploded").exists()
    assert JsonSerializer().serialize(Message(id="a", name="b", args=(1,))) == b'{"id":"a","name":"b","args":[1]}'
