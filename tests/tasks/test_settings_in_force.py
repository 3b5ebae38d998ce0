"""Settings that change under a running worker apply to it, too: switching off, and withdrawn consent."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.cli.worker import SettingsInForce
from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.runtime.settings import load_settings
from memoryvault.services.health_report import health_report
from memoryvault.services.pausing import why_nothing_starts
from memoryvault.tasks.queue.enqueue import enqueue, open_ledger
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.worker import Worker
from memoryvault.tests.support.sandbox import Sandbox
from memoryvault.vault.marker import REFLECTED, marker_path

from .support import only_job, wait_until
from .test_worker import context


def write_config(sandbox: Sandbox, text: str) -> None:
    """Replace the file, as an editor does."""
    written = sandbox.root / "config.toml.new"
    written.write_text(text, "utf-8")
    os.utime(written, (time.time(), time.time()))
    written.replace(sandbox.root / "config.toml")


def test_settings_have_changed_when_they_say_something_else(sandbox: Sandbox) -> None:
    write_config(sandbox, "[research]\nnetwork = true\n")
    in_force = SettingsInForce(load_settings(sandbox.environment))
    assert not in_force.have_changed()
    write_config(sandbox, "# the same in other words\n[research]\nnetwork = true\n")
    assert not in_force.have_changed()
    write_config(sandbox, "[research]\nnetwork = false  # not any more\n")
    assert in_force.have_changed()
    assert not in_force.take().research.network
    assert not in_force.have_changed()


def test_an_unreadable_file_changes_nothing_until_mended(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    in_force = SettingsInForce(load_settings(sandbox.environment))
    write_config(sandbox, "[research]\nnetwork = perhaps\n")
    assert not in_force.have_changed()
    assert not in_force.have_changed()
    assert [record.levelname for record in caplog.records] == ["WARNING"], "said once"
    write_config(sandbox, "[memory]\nenabled = false\n")
    assert in_force.have_changed()


def test_nothing_starts_while_a_file_that_can_not_be_read_seems_to_switch_memory_off(sandbox: Sandbox) -> None:
    in_force = SettingsInForce(load_settings(sandbox.environment))
    write_config(sandbox, "[memory]\nenabled = False\n")
    assert in_force.have_changed()
    assert why_nothing_starts(in_force.take()) == "memory.enabled is false"
    write_config(sandbox, "[memory]\nenabled = true\n")
    assert in_force.have_changed()
    assert why_nothing_starts(in_force.take()) is None


def test_a_file_that_is_empty_while_it_is_saved_changes_nothing(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path)
    vault = f'[vault]\npath = "{sandbox.vault}"\n'
    environment = {name: value for name, value in sandbox.environment.items() if name != "MEMORY_VAULT_PATH"}
    write_config(sandbox, vault)
    in_force = SettingsInForce(load_settings(environment))
    write_config(sandbox, "")
    assert not in_force.have_changed(), "it names no vault"
    write_config(sandbox, vault + "[memory]\nenabled = false\n")
    assert in_force.have_changed()


def test_latest_content_of_the_settings_file_is_used(sandbox: Sandbox) -> None:
    settings = load_settings(sandbox.environment)
    write_config(sandbox, "[memory]\nenabled = false\n")
    in_force = SettingsInForce(settings)
    assert in_force.have_changed(), "between reading and the first look"
    write_config(sandbox, "[memory]\nenabled = true\n[research]\nnetwork = true\n")
    taken = in_force.take()
    assert (taken.memory.enabled, taken.research.network) == (True, True)


def test_a_worker_whose_settings_hold_no_more_ends_what_runs_and_leaves(state: StatePaths, ledger: Ledger) -> None:
    begun: list[int] = []

    def handler(job: object) -> None:
        begun.append(1)
        time.sleep(1.0)

    ledger.enqueue("effect")
    setting = replace(context(state), lease_seconds=0.3, is_outdated=lambda: bool(begun))
    worker = Worker(setting, {"effect": handler})
    assert worker.run_forever() == 0
    assert worker.is_outdated
    assert only_job(ledger).state == "done"


@pytest.mark.slow
def test_a_running_worker_stops_and_goes_on_as_the_settings_say(sandbox: Sandbox) -> None:
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    settings = load_settings(sandbox.environment)
    with sandbox.process("service", "worker"), open_ledger(settings) as ledger:
        wait_until(lambda: ledger.list_jobs(["done"], kind="index.reconcile"), "it works")
        worker = lock_holder(settings.state.worker_lock)
        write_config(sandbox, "[memory]\nenabled = false\n")
        time.sleep(6)  # It looks every three seconds.
        enqueue(settings, "logs.rotate", unique_key="logs.rotate")
        time.sleep(2)
        assert len(ledger.list_jobs(["queued"], kind="logs.rotate")) == 1
        off = load_settings(sandbox.environment)
        assert why_nothing_starts(off) == "memory.enabled is false"
        assert any(
            "memory.enabled is false" in line for line in health_report(off, time.time(), lambda _: True).warnings
        )
        done = sandbox.run("service", "worker", "--until-idle")
        assert "memory.enabled is false: nothing is recorded and no job starts" in done.stderr
        write_config(sandbox, "[memory]\nenabled = true\n")
        wait_until(lambda: not ledger.list_jobs(["queued"], kind="logs.rotate"), "it goes on")
        assert lock_holder(settings.state.worker_lock) == worker, "the same process"


# A project that its file `.memoryvault` excludes after a session in it had begun


SHIPPED_SESSION = Path(__file__).resolve().parents[2] / "demo" / "session.jsonl"
SESSION = "3f0c6a52-7d1e-4c55-9a51-0f6f6f2b8a11"


@pytest.mark.slow
@pytest.mark.hurried
@pytest.mark.parametrize("left_out", [False, True])
def test_session_of_an_excluded_project_is_not_mined(tmp_path: Path, left_out: bool) -> None:
    sandbox = Sandbox(tmp_path)
    project = tmp_path / "home" / "secret"
    (project / ".git").mkdir(parents=True)
    transcript = sandbox.transcript(SESSION, SHIPPED_SESSION.read_text("utf-8"))
    payload = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": str(project)}
    sandbox.hook("SessionStart", {**payload, "source": "startup"})
    sandbox.hook("SessionEnd", {**payload, "reason": "prompt_input_exit"})
    if left_out:
        (project / ".memoryvault").write_text("off\n")
    sandbox.memory("service", "worker", "--until-idle")
    assert bool(sandbox.json("list", "--status", "all")) is not left_out
    assert Path(marker_path(str(sandbox.state / "markers"), SESSION, REFLECTED)).is_file()
    assert json.loads(sandbox.memory("reflect", "corpus", "--json"))["to_process"] == 0
