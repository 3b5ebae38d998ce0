"""What the indexing jobs log when they cannot do their work."""

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from memoryvault.index.client import EMBED_SECONDS
from memoryvault.index.drain import DrainReport
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.services.indexing import reconcile_now
from memoryvault.services.stores import open_index, vault_store
from memoryvault.tasks.jobs import indexing
from memoryvault.tasks.jobs.indexing import drain_handler, watch_vault, watch_wanted_index
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.job import Handler, RunningJob
from memoryvault.tasks.queue.worker import Worker, WorkerContext
from memoryvault.tasks.queue.worklog import JsonLines, Lasting
from memoryvault.tests.support.files import put
from memoryvault.tests.support.forked import ForkedSandbox


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of a vault with one note, in the index and not embedded: there is no recall service. Nothing was logged of it."""
    for name in ("NOT_EMBEDDED", "NOT_HERE", "FAILED"):
        monkeypatch.setattr(indexing, name, Lasting(indexing.log))
    sandbox = ForkedSandbox(tmp_path)
    sandbox.memory("save", "fix", "locked-db", "--body", "Give each worker its own SQLite file.")
    settings = load_settings(sandbox.environment)
    reconcile_now(settings)
    return settings


def told(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [line for line in caplog.messages if words in line]


def drain_times(settings: Settings, handler: Handler, times: int) -> None:
    """As often as after so many ideas that are looked up in one run of the worker."""
    with open_ledger(settings) as ledger:
        for number in range(times):
            ledger.enqueue("embed.drain", unique_key=f"embed.drain:{number}")
    context = WorkerContext(settings.state, schedules=())
    assert Worker(context, {"embed.drain": handler}).run_until_idle(60.0).done == times


def test_why_nothing_is_embedded_is_told_once(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    handler = partial(drain_handler, settings)
    drain_times(settings, handler, 3)
    (first,) = told(caplog, "not embedded")
    assert "No such file" in first
    Path(settings.state.recall_socket).touch()  # as one that has died leaves it
    drain_times(settings, handler, 2)
    assert "refused" in told(caplog, "not embedded")[1], "another reason"
    assert len(told(caplog, "not embedded")) == 2


def test_a_model_that_is_named_and_not_here_is_told_once(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    with open_index(settings) as index:
        index.put_in_force("the-old-one")
    settings.config_file.write_text('[embedding]\nmodel = "nobody/knows-it"\n', "utf-8")
    drain_times(settings, partial(drain_handler, settings), 3)
    assert len(told(caplog, "goes on answering")) == 1


def test_returning_condition_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("memoryvault.tests.lasting")
    condition = Lasting(log)
    for message in ("no disk", "no disk", "no model"):
        condition.is_so(message)
    condition.is_over()
    condition.is_so("no model")
    assert caplog.messages == ["no disk", "no model", "no model"]


def test_a_damaged_index_is_filled_again_whoever_found_it(settings: Settings) -> None:
    """A process that opens it to embed or search may have set it aside; the empty index causes no further error."""
    Path(settings.state.index_db).write_bytes(b"this is no database at all\n" * 400)
    with open_index(settings) as index:
        assert index.files() == {}
    with open_ledger(settings) as ledger:
        for job in ledger.list_jobs(["queued"]):
            ledger.cancel(job.id)
        watch_wanted_index(settings, ledger)()
        assert [(job.kind, job.args) for job in ledger.list_jobs(["queued"])] == [("index.reconcile", {})]


def test_a_worker_that_watches_begins_with_a_walk(settings: Settings) -> None:
    """Edits made while no worker ran are found at its start, not half an hour later."""
    Worker(WorkerContext(settings.state, schedules=()), {"index.reconcile": lambda job: {}}).run_until_idle(60.0)
    with open_ledger(settings) as ledger:
        watch_vault(settings.required_vault_path, ledger)()
        assert [job.args for job in ledger.list_jobs(["queued"], kind="index.reconcile", most=9)] == [{}]


def test_a_running_process_follows_the_machines_time_zone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console and an agent's server run for months and date the decisions made there."""
    store, days = vault_store(settings), []
    try:
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):  # They are 25 hours apart.
            monkeypatch.setenv("TZ", zone)
            days.append(store.today())
    finally:
        monkeypatch.undo()
        time.tzset()
    assert days[0] > days[1]


def test_a_text_that_cannot_be_embedded_is_counted_in_the_job_and_named_in_the_log_until_its_note_is_deleted(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = put(settings.required_vault_path / 'Zürich "Nord"' / "zelthumper.md", "Text.\n")
    reconcile_now(settings)
    failed = (('Zürich "Nord"/zelthumper.md', "it says brimfozzle"),)
    monkeypatch.setattr(indexing, "drain_now", lambda settings, **options: DrainReport(1, 1, 1, None, failed))
    log_file = Path(settings.state.log_file)
    monkeypatch.setattr(indexing.log, "handlers", [JsonLines(str(log_file), lambda line: None)])
    drain_times(settings, partial(drain_handler, settings), 2)
    with open_ledger(settings) as ledger:
        jobs = ledger.list_jobs(["done"], kind="embed.drain", most=9)
    assert [job.history[-1]["result"] for job in jobs] == [{"embedded": 1, "remaining": 1, "errors": 1}] * 2
    (line,) = [line for line in log_file.read_text("utf-8").splitlines() if "zelthumper" in line]
    assert "brimfozzle" not in line
    note.unlink()
    reconcile_now(settings)
    assert "zelthumper" not in log_file.read_text("utf-8")


@pytest.mark.parametrize(("processed", "asked"), [(7, 1), (0, 0)])
def test_a_drain_that_stops_half_way_asks_for_the_rest_and_one_that_can_do_nothing_does_not(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, processed: int, asked: int
) -> None:
    report = DrainReport(processed, 0, 3, "the recall service left")
    monkeypatch.setattr(indexing, "drain_now", lambda settings, **options: report)
    drain_times(settings, partial(drain_handler, settings), 1)
    with open_ledger(settings) as ledger:
        assert len(ledger.list_jobs(["queued"], kind="embed.drain")) == asked


def test_a_drain_ends_at_its_deadline_and_asks_for_more(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that runs beyond the deadline would make it a failed attempt, the last of which nobody repeats."""

    def one_batch(settings: Settings, *, should_stop: Callable[[], bool]) -> DrainReport:
        assert not should_stop()
        monkeypatch.setattr(RunningJob, "remaining_seconds", lambda job: EMBED_SECONDS)
        assert should_stop(), "another batch may take as long as is left"
        return DrainReport(128, 0, 275)

    monkeypatch.setattr(indexing, "drain_now", one_batch)
    drain_times(settings, partial(drain_handler, settings), 1)
    with open_ledger(settings) as ledger:
        assert len(ledger.list_jobs(["queued"], kind="embed.drain")) == 1
