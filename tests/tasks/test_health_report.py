"""`memory health` as an object: its sections, and warnings about unreadable ones."""

import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from memoryvault.cli.main import main
from memoryvault.runtime.process_lock import ProcessLock
from memoryvault.runtime.settings import Settings
from memoryvault.services.health_report import health_report
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.spending import SpendingBook
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.review.support import Bed, make_bed

PROGRAMS_READ: dict[str, object] = {
    "warnings": [],
    "entries": {"groups": {"personal-private": 1}, "in_use": 1, "set_aside": {"resolved": 1}},
    "waiting": {"proposals": 0, "questions": 0, "copies": 0, "inbox": 0, "ideas": 0, "patterns": 0},
    "last_reflection": None,
    "unconfirmed": 0,
    "queue": {"running": 0, "due": 0, "delayed": 0, "dead": 0},
    "sessions": {"waiting": 0, "first_in_seconds": None, "running": 0, "paused": False},
    "index": {
        "entries": 2,
        "chunks": 2,
        "embedded": 0,
        "pending": None,
        "models": [],
        "size_bytes": 0,
        "last_indexed": 0.0,
        "model": None,
        "model_to_use": "",
        "model_problem": "",
    },
    "hooks": [
        {"event": "Stop", "count": 1, "p50_ms": 12.5, "p95_ms": 12.5, "p99_ms": 12.5, "budget_ms": 100.0,
         "over_budget": 0, "degraded": 0}
    ],
    "miner": "local",
    "spending": {
        "today": [{"purpose": "mining", "unit": "tokens", "spent": 7}],
        "week": [{"purpose": "mining", "unit": "tokens", "spent": 7}],
    },
    "marked": {"useful": 1, "noise": 0},
    "processes": {"worker": None, "recall": None},
}  # fmt: skip


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    """Something for each section."""
    bed = make_bed(tmp_path)
    state = bed.settings.state
    bed.note("personal-private/preferences/tabs.md", "# Tabs\n\nUse tabs.", kind="preferences")
    bed.note("personal-private/fix/lock.md", "# Lock\n\nIt was held.", kind="fix", status="resolved")
    reconcile_now(bed.settings)
    with open_ledger(bed.settings):
        pass
    book = SpendingBook(state.state_db, "mining")
    book.settle(book.reserve("s1", {"tokens": 9}), {"tokens": 7})
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    hook = {"time": at, "event": "hook", "hook": "Stop", "duration_ms": 12.5}
    Path(state.log_file).write_text(json.dumps(hook) + "\n", "utf-8")
    mark = {"at": "2026-01-01", "path": "personal-private/preferences/tabs.md", "useful": True}
    Path(state.log, "marks.jsonl").write_text(json.dumps(mark) + "\n", "utf-8")
    return bed


def test_programs_read_the_same_names_in_the_same_order(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.enter(monkeypatch)
    assert main(["health", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = json.loads(json.dumps(PROGRAMS_READ))
    for name in ("size_bytes", "last_indexed", "model_to_use", "model_problem"):  # of this machine and this moment
        expected["index"][name] = told["index"][name]
    assert json.dumps(told, indent=2) == json.dumps(expected, indent=2)


def wired(_: Settings) -> bool:
    return True


@pytest.mark.parametrize(("file", "section"), [("queue_db", "queue"), ("index_db", "index"), ("state_db", "spending")])
def test_a_section_that_cannot_be_read_says_why_among_the_warnings_and_hides_no_other(
    bed: Bed, file: str, section: str
) -> None:
    damaged = Path(getattr(bed.settings.state, file))
    damaged.unlink()
    damaged.mkdir()
    report = asdict(health_report(bed.settings, time.time(), wired))
    assert [name for name in ("entries", "waiting", "queue", "index", "spending") if report[name] is None] == [section]
    assert [str(damaged) in line for line in report["warnings"]] == [True]


def test_a_vault_that_is_not_there_hides_only_what_is_in_it(bed: Bed) -> None:
    bed.vault.rename(bed.root / "elsewhere")
    report = health_report(bed.settings, time.time(), wired)
    assert (report.entries, report.waiting) == (None, None)
    assert report.index is not None
    (warning,) = report.warnings
    assert warning.startswith(f"the vault {bed.vault} is not there")


def test_work_that_nothing_will_begin_is_a_warning(bed: Bed) -> None:
    def warnings(*, autostart: bool, enabled: bool = True, is_wired: bool = True) -> tuple[str, ...]:
        memory = replace(bed.settings.memory, autostart=autostart, enabled=enabled)
        settings = replace(bed.settings, memory=memory)
        return health_report(settings, time.time(), lambda _: is_wired).warnings

    assert warnings(autostart=False) == ()
    with open_ledger(bed.settings) as ledger:
        ledger.enqueue("index.reconcile", unique_key="index.reconcile")
    assert warnings(autostart=False) == ("1 job is due and no worker runs: `memory service up`",)
    assert warnings(autostart=True) == (), "the next session starts one"
    assert warnings(autostart=True, is_wired=False) == warnings(autostart=False), "none would"
    (off,) = warnings(autostart=False, enabled=False)
    assert off.startswith("memory.enabled is false")
    lock = ProcessLock(bed.settings.state.worker_lock)
    assert lock.acquire()
    assert warnings(autostart=False) == ()
    lock.release()


def test_entries_without_room_at_a_sessions_start_are_named(bed: Bed) -> None:
    bed.note("personal-private/_always-load/long.md", "word " * 90, kind="preferences")
    bed.note("personal-private/preferences/short.md", "Keep answers short.", kind="preferences", always_load=True)
    reconcile_now(bed.settings)
    narrow = replace(bed.settings, recall=replace(bed.settings.recall, core_words=80))
    warned = [line for line in health_report(narrow, time.time(), lambda _: True).warnings if "no room" in line]
    assert len(warned) == 1
    assert "start for long (`recall.core_words` is 80)" in warned[0]
