"""Logs are rotated and old files deleted, and nothing else."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryvault.runtime.days import SECONDS_PER_DAY
from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.jobs.upkeep import KEEP_DAYS, clean_temporaries, delete_old, rotate_logs
from memoryvault.tasks.queue.damage import backup_of
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tests.support.forked import ForkedSandbox

NOW = datetime(2027, 3, 10, 4, 30, tzinfo=UTC).timestamp()


def stamp(days_ago: float) -> str:
    return datetime.fromtimestamp(NOW - days_ago * SECONDS_PER_DAY, UTC).isoformat()


def test_a_log_is_rotated_after_a_week(state: StatePaths) -> None:
    Path(state.log_file).write_text(json.dumps({"time": stamp(8)}) + "\n" + json.dumps({"time": stamp(0)}) + "\n")
    Path(state.receipts).write_text(json.dumps({"at": stamp(6)}) + "\n")
    assert rotate_logs(state, NOW) == ["memoryvault.log"]
    assert sorted(os.listdir(state.log)) == ["memoryvault.log.20270310", "receipts.jsonl"]
    assert rotate_logs(state, NOW) == []


def test_the_stderr_of_a_running_service_is_cut_in_place(state: StatePaths) -> None:
    path = Path(state.log, "serve.stderr")
    with path.open("ab") as held:
        held.write(b"x" * 2_000_000)
        held.flush()
        assert rotate_logs(state, NOW) == ["serve.stderr"]
        held.write(b"goes on")
        held.flush()
    assert path.read_bytes() == b"goes on"


def test_only_what_is_old_is_deleted(state: StatePaths) -> None:
    old, new = NOW - (KEEP_DAYS + 1) * SECONDS_PER_DAY, NOW - (KEEP_DAYS - 1) * SECONDS_PER_DAY
    files = {
        "log/memoryvault.log": (old, True), "log/memoryvault.log.20270101": (old, False),
        "log/receipts.jsonl.20270301": (new, True),
        "queue.db.damaged-20270101T000000Z": (old, False), "queue.db": (old, True),
        "index.db.corrupt-20270101T000000": (old, False), "index.db.corrupt-20270101T000000-wal": (old, False),
        "index.db": (old, True),
        "spool/1-1.json.tmp": (old, False), "spool/1-2.json": (old, True), "markers/.s.1.tmp": (old, False),
        "../run/installation": (old, True), "../run/hooks-1.snapshot": (NOW, True),
        "../run/.hooks-1.snapshot-77-1.tmp": (old, False), "../run/hooks-2.snapshot": (old, False),
    }  # fmt: skip
    Path(state.root, "../run").mkdir(exist_ok=True)
    for name, (when, _) in files.items():
        Path(state.root, name).touch()
        os.utime(Path(state.root, name), (when, when))
    assert delete_old(state, NOW) + clean_temporaries(state, NOW) == 8
    assert {name: Path(state.root, name).exists() for name in files} == {
        name: kept for name, (_, kept) in files.items()
    }


@pytest.mark.slow
def test_the_job_prunes_and_copies(sandbox: ForkedSandbox) -> None:
    sandbox.memory("service", "worker", "--until-idle")
    path = sandbox.state / "queue.db"
    with Ledger(path) as ledger, ledger.transaction() as conn:
        conn.execute(
            "INSERT INTO job (kind, args, state, run_at, created_at, finished_at) "
            "SELECT 'embed.drain', '{}', value, 1.0, 1.0, 1.0 FROM json_each('[\"done\", \"cancelled\", \"dead\"]')"
        )
    temporary = sandbox.vault / ".memoryvault-leftover.tmp"
    sandbox.memory("jobs", "schedule", "run", "logs-rotate")
    sandbox.memory("service", "worker", "--until-idle")
    with Ledger(path) as ledger:
        assert [job.state for job in ledger.list_jobs() if job.created_at == 1.0] == ["dead"]
        (rotation,) = [job for job in ledger.list_jobs() if job.kind == "logs.rotate"]
        assert rotation.history[-1]["result"]["pruned"] == 2
        assert rotation.history[-1]["result"]["copied"] == 2, "queue.db and state.db"
    assert backup_of(path).stat().st_mtime > time.time() - 60
    assert not temporary.exists()


def test_findings_about_an_abandoned_idea_are_deleted(state: StatePaths) -> None:
    """Of one that was deleted or promoted while it waited for the network: it quotes the user's own notes."""
    research = Path(state.cache) / "research"
    waiting, left = research / "1", research / "2"
    for folder in (waiting, left):
        folder.mkdir(parents=True)
        for name, days in (("related-obsidian.json", 30), ("said.txt", 30 if folder is left else 1)):
            (folder / name).write_text("tomatoes", "utf-8")
            os.utime(folder / name, (NOW - days * SECONDS_PER_DAY,) * 2)
        os.utime(folder, (NOW - 30 * SECONDS_PER_DAY,) * 2)
    clean_temporaries(state, NOW)
    assert (waiting.exists(), left.exists()) == (True, False)
