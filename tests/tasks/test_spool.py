"""Jobs that hooks could not put into queue.db are enqueued later."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.spool import Spool
from memoryvault.tests.tasks.support import POLICIES, only_job


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "queue.db", policies=POLICIES) as ledger:
        yield ledger


@pytest.fixture
def spool(tmp_path: Path, ledger: Ledger) -> Spool:
    (tmp_path / "spool").mkdir()
    return Spool(tmp_path / "spool", ledger)


def drop(tmp_path: Path, name: str, fields: object) -> None:
    """What a hook leaves."""
    (tmp_path / "spool" / name).write_text(json.dumps(fields))


def test_files_become_jobs_oldest_first(tmp_path: Path, spool: Spool, ledger: Ledger) -> None:
    job = {"kind": "effect", "args": {"key": "b"}, "unique_key": "s", "run_at": 5.5e9, "policy": "later"}
    drop(tmp_path, "1000-7.json", job)
    drop(tmp_path, "999-8.json", {**job, "args": {"key": "a"}, "run_at": 5e9})
    (tmp_path / "spool" / ".half.json").write_text("{")
    (tmp_path / "spool" / "half.tmp").write_text("{")
    assert spool.ingest() == 2
    assert only_job(ledger).args == {"key": "a"}
    assert only_job(ledger).run_at == 5.5e9
    assert spool.is_empty()
    assert spool.ingest() == 0


def test_file_that_cannot_be_enqueued_becomes_a_dead_job(tmp_path: Path, spool: Spool, ledger: Ledger) -> None:
    (tmp_path / "spool" / "1-1.json").write_bytes(b'{"kind": \xff')
    drop(tmp_path, "2-1.json", {"kind": "gone", "args": {}})
    drop(tmp_path, "3-1.json", {"kind": "effect", "args": {"key": 7}})
    drop(tmp_path, "4-1.json", ["effect"])
    drop(tmp_path, "5-1.json", {"kind": "effect", "args": {}, "run_at": "soon"})
    assert spool.ingest() == 0
    jobs = ledger.list_jobs()
    assert {job.state for job in jobs} == {"dead"}
    assert [job.error.split(":")[0] for job in jobs if job.error] == [f"{n}-1.json" for n in (5, 4, 3, 2, 1)]
    assert spool.is_empty()


def test_a_spool_that_is_not_there_is_empty(tmp_path: Path, ledger: Ledger) -> None:
    assert Spool(tmp_path / "none", ledger).ingest() == 0


def test_more_files_than_one_batch_are_all_taken(tmp_path: Path, spool: Spool, ledger: Ledger) -> None:
    for number in range(450):
        drop(tmp_path, f"{number}-1.json", {"kind": "effect", "args": {"key": str(number)}})
    assert spool.ingest() == 450
    assert ledger.backlog().due == 450
