"""Computing the figures of `memory health` from log lines and paths."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memoryvault.hooks import client, session_start
from memoryvault.runtime.days import SECONDS_PER_DAY
from memoryvault.runtime.process_lock import ProcessLock
from memoryvault.services import hook_log, pending_counts
from memoryvault.services.active_counts import count_active_paths, describe_notes
from memoryvault.services.health_report import SILENT_DAYS, health_report, warnings_of
from memoryvault.services.hook_log import HookRun, hook_times, read_hook_runs, run_of
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.pending_counts import PendingCounts, count_pending_paths
from memoryvault.services.spending import SpendingBook
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.review.support import Bed, make_bed
from memoryvault.tests.support.command import Command

NOW = datetime(2026, 7, 1, tzinfo=UTC).timestamp()
DAY = SECONDS_PER_DAY


def line(hook: str, ms: object, age_days: float = 0.0, **fields: object) -> dict[str, object]:
    stamp = datetime.fromtimestamp(NOW - age_days * DAY, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {"time": stamp, "level": "info", "event": "hook", "hook": hook, "duration_ms": ms, **fields}


def runs(lines: Iterable[Mapping[str, object]]) -> list[HookRun]:
    return [run for line in lines if (run := run_of(line)) is not None]


def test_hooks_of_the_last_week_are_measured_against_their_budgets() -> None:
    lines = [line("UserPromptSubmit", float(ms)) for ms in (*range(1, 100), 400)]
    lines += [line("UserPromptSubmit", 9999.0, age_days=8), line("Stop", 12), line("Stop", 130.0, degraded="x")]
    lines += [{"event": "worker.start", "ms": 5}, line("Stop", "a lot"), line("Stop", True)]
    lines += [line("SessionStart", 376.0, result="time budget exceeded")]
    prompt, stop, start = sorted(hook_times(runs(lines), NOW - 7 * DAY), key=lambda times: -times.count)
    assert (prompt.event, prompt.count, prompt.p50_ms, prompt.p95_ms, prompt.p99_ms) == (
        "UserPromptSubmit", 100, 50.0, 95.0, 99.0,
    )  # fmt: skip
    assert (prompt.budget_ms, prompt.over_budget, prompt.degraded) == (300.0, 1, 0)
    assert (stop.count, stop.p95_ms, stop.budget_ms, stop.over_budget, stop.degraded) == (2, 130.0, 100.0, 1, 1)
    assert (start.count, start.degraded) == (1, 1), "cut off"


def test_the_budgets_are_those_that_the_hooks_keep() -> None:
    assert {event: seconds * 1000 for event, seconds in client.BUDGET_SECONDS.items()} == hook_log.HOOK_BUDGETS_MS
    limits = (session_start.INBOX_LIMIT, session_start.INCUBATOR_LIMIT, session_start.SILENT_DAYS)
    assert limits == (pending_counts.INBOX_LIMIT, pending_counts.INCUBATOR_LIMIT, SILENT_DAYS)


def test_the_rotated_log_counts_too_and_torn_lines_do_not(tmp_path: Path) -> None:
    log = tmp_path / "memoryvault.log"
    (tmp_path / "memoryvault.log.20260628").write_text(
        json.dumps(line("Stop", 5.0, age_days=3, project="caf\udce9")) + "\n"
    )
    log.write_text(json.dumps(line("Stop", 6.0)) + '\n{"event": "hook", "duration_ms": 3\n' + '{"event": "other"}\n')
    os.utime(tmp_path / "memoryvault.log.20260628", (NOW, NOW))
    assert [run.ms for run in read_hook_runs(log, NOW - 7 * DAY)] == [5.0, 6.0]


def test_entries_are_counted_by_group_and_what_waits_by_its_folder() -> None:
    paths = [
        "personal-private/fix/a.md", "personal-private/_always-load/b.md", "personal-projects/shop/fix/c.md",
        "personal-private/_inbox/d.md", "personal-private/_review/e.md", "personal-private/_review/_archive/f.md",
        "personal-private/_idea-incubator/idea/_index.md", "personal-private/_idea-incubator/idea/research-1.md",
        "personal-private/_archive/g.md.20260101.md", "_meta/sources.md", "personal-private/_skill-watchlist/tips/h.md",
    ]  # fmt: skip
    active, pending = count_active_paths(paths), count_pending_paths(paths)
    assert active.groups == {"personal-private": 2, "personal-projects": 1}
    assert pending == PendingCounts(proposals=1, questions=0, inbox=1, ideas=1)
    assert (active.in_use, pending.notes) == (3, 3)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ((), "0 entries"),
        (("personal-private/fix/a.md",), "1 entry"),
        (
            (
                "personal-private/fix/a.md", "personal-private/fix/b.md", "personal-private/_review/c.md",
                "personal-private/_inbox/d.md", "personal-private/_idea-incubator/idea/_index.md",
                "personal-private/_idea-incubator/idea/research-1.md", "_meta/corpus-digest.md",
            ),
            "7 notes (2 entries in use, 1 proposal, 1 in the inbox, 1 idea, 2 others)",
        ),
    ],
)  # fmt: skip
def test_description_of_an_index_adds_up(paths: tuple[str, ...], said: str) -> None:
    """`memory init` counts the entries alone: with one number for all of it a newcomer sees two that disagree."""
    assert describe_notes(paths) == said


@pytest.mark.parametrize(
    ("inbox", "ideas", "last", "waiting", "warned"),
    [
        (50, 20, NOW - 7 * DAY, None, []),
        (51, 20, NOW, None, ["inbox"]),
        (0, 21, NOW, None, ["incubator"]),
        (0, 0, NOW - 8 * DAY, None, ["8 days"]),
        (0, 0, None, None, []),
        (0, 0, None, NOW - 9 * DAY, ["9 days"]),
        (0, 0, NOW - DAY, NOW - 9 * DAY, []),
    ],
)
def test_warnings_begin_above_the_limits(
    inbox: int, ideas: int, last: float | None, waiting: float | None, warned: list[str]
) -> None:
    found = warnings_of(PendingCounts(proposals=0, questions=0, inbox=inbox, ideas=ideas), last, waiting, NOW)
    assert len(found) == len(warned)
    assert all(word in text for word, text in zip(warned, found, strict=True))


PROGRAMS_READ: dict[str, object] = {
    "warnings": [],
    "entries": {"groups": {"personal-private": 1}, "in_use": 1, "set_aside": {"resolved": 1}},
    "waiting": {"proposals": 0, "questions": 0, "copies": 0, "inbox": 0, "ideas": 0, "patterns": 0},
    "last_reflection": None,
    "unconfirmed": 0,
    "queue": {"running": 0, "due": 0, "delayed": 0, "dead": 0},
    "sessions": {"waiting": 0, "first_in_seconds": None, "running": 0, "paused": False},
    "index": {
        "entries": 2, "chunks": 2, "embedded": 0, "pending": None, "models": [], "size_bytes": 0, "last_indexed": 0.0,
        "model": None, "model_to_use": "", "model_problem": "",
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
    return bed


def test_programs_read_the_same_names_in_the_same_order(ask: Bed, memory: Command) -> None:
    told = memory.json("health")
    expected = json.loads(json.dumps(PROGRAMS_READ))
    for name in ("size_bytes", "last_indexed", "model_to_use", "model_problem"):  # of this machine and this moment
        expected["index"][name] = told["index"][name]
    assert json.dumps(told, indent=2) == json.dumps(expected, indent=2)


@pytest.mark.parametrize(("file", "section"), [("queue_db", "queue"), ("index_db", "index"), ("state_db", "spending")])
def test_a_section_that_cannot_be_read_says_why_and_hides_no_other(bed: Bed, file: str, section: str) -> None:
    damaged = Path(getattr(bed.settings.state, file))
    damaged.unlink()
    damaged.mkdir()
    report = asdict(health_report(bed.settings, time.time(), lambda _: True))
    assert [name for name in ("entries", "waiting", "queue", "index", "spending") if report[name] is None] == [section]
    assert [str(damaged) in line for line in report["warnings"]] == [True]


def test_a_vault_that_is_not_there_hides_only_what_is_in_it(bed: Bed) -> None:
    bed.vault.rename(bed.root / "elsewhere")
    report = health_report(bed.settings, time.time(), lambda _: True)
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
