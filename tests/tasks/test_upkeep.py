"""Logs are rotated and old files deleted, and nothing else."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryvault.runtime.days import SECONDS_PER_DAY
from memoryvault.runtime.layout import StatePaths
from memoryvault.services.cursors import Cursors
from memoryvault.services.ideas.ledger import IDEA_TRASH
from memoryvault.tasks.jobs.upkeep import (
    KEEP_DAYS,
    LAST_RUN,
    SCAN,
    clean_temporaries,
    delete_old,
    rotate_logs,
    steady_time,
)
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
        "index.db.damaged-20270101T000000Z": (old, False), "index.db.damaged-20270101T000000Z-wal": (old, False),
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
@pytest.mark.parametrize(("days", "kept"), [(364, True), (1, False)])
def test_a_clock_that_leapt_ahead_deletes_nothing_for_good(sandbox: ForkedSandbox, days: int, kept: bool) -> None:
    """Of an idea that was deleted 31 days ago, by the clock: the run before was so many days ago."""
    sandbox.memory("service", "worker", "--until-idle")
    Cursors(sandbox.state / "state.db", SCAN).set(LAST_RUN, {"at": time.time() - days * SECONDS_PER_DAY})
    trashed = sandbox.vault / IDEA_TRASH / "one"
    trashed.mkdir(parents=True)
    deleted = (datetime.now().astimezone() - timedelta(days=31)).date().isoformat()
    (trashed / "_index.md").write_text(f"---\nkind: idea\nstatus: dismissed\ndeleted: {deleted}\n---\n\n# One\n")
    aside = sandbox.state / "queue.db.damaged-20260101T000000Z"
    aside.touch()
    os.utime(aside, (1, time.time() - 31 * SECONDS_PER_DAY))
    with Ledger(sandbox.state / "queue.db") as ledger, ledger.transaction() as conn:
        conn.execute("UPDATE job SET finished_at = :old WHERE state = 'done'", {"old": aside.stat().st_mtime})
        old = [job.id for job in ledger.list_jobs(["done"])]
    assert old
    for _ in range(2):  # The next morning's run may be due a minute after the one that was caught up.
        sandbox.memory("jobs", "schedule", "run", "logs-rotate")
        sandbox.memory("service", "worker", "--until-idle")
        assert (trashed.exists(), aside.exists()) == (kept, kept)
        with Ledger(sandbox.state / "queue.db") as ledger:
            assert (min(job.id for job in ledger.list_jobs(["done"])) == min(old)) is kept


def test_a_leap_of_the_clock_is_believed_when_it_has_run_on_for_two_days(tmp_path: Path) -> None:
    runs, day, leap = Cursors(tmp_path / "state.db", SCAN), SECONDS_PER_DAY, 40 * SECONDS_PER_DAY
    times = [0, day, leap, leap + 60, leap + day, leap + 2 * day, leap + 3 * day]
    assert [steady_time(runs, now) for now in times] == [0, day, *[3 * day] * 3, leap + 2 * day, leap + 3 * day]


def test_a_leap_of_the_clock_that_was_set_right_counts_for_nothing(tmp_path: Path) -> None:
    runs, day, leap = Cursors(tmp_path / "state.db", SCAN), SECONDS_PER_DAY, 400 * SECONDS_PER_DAY
    assert [steady_time(runs, now) for now in (0, leap, leap + 60, day)] == [0, 2 * day, 2 * day, day]
    assert [steady_time(runs, now) for now in (leap, leap / 2, leap / 2 + day)] == [3 * day] * 3
    assert [steady_time(runs, now) for now in (leap / 2 + 2 * day, day)] == [leap / 2 + 2 * day, day]


@pytest.mark.slow
def test_the_job_prunes_and_copies(sandbox: ForkedSandbox) -> None:
    sandbox.memory("service", "worker", "--until-idle")
    path = sandbox.state / "queue.db"
    with Ledger(path) as ledger, ledger.transaction() as conn:
        conn.execute(
            "INSERT INTO job (kind, args, state, run_at, created_at, finished_at) "
            "SELECT 'embed.drain', '{}', value, 1.0, 1.0, 1.0 FROM json_each('[\"done\", \"cancelled\", \"dead\"]')"
        )
    temporary = sandbox.vault / ".memoryvault-7-0123456789ab.tmp"
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
