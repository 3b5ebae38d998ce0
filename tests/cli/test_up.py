"""`memory service up`: worker and recall service in one terminal, whatever runs already."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.cli.main import build_parser
from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.lock import hold_lock
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.runtime.settings import load_settings

from ..acceptance.test_the_loop import record_session
from ..support.sandbox import Sandbox
from ..tasks.support import wait_until

pytestmark = pytest.mark.slow
WAIT_SECONDS = 60.0  # The worker gives its jobs 20 s; then the service ends what it does.
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    made = Sandbox(tmp_path)
    made.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    return made


def reflections(sandbox: Sandbox) -> list[str]:
    return [job["state"] for job in sandbox.json("jobs", "list", "--kind", "reflect.session")]


def test_it_takes_a_running_recall_service_and_a_second_one_disturbs_nothing(sandbox: Sandbox) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "serve"):
        wait_until(lambda: lock_holder(state.recall_lock) is not None, "a session has started one")
        before = lock_holder(state.recall_lock)
        with sandbox.process("service", "up") as up:
            wait_until(lambda: lock_holder(state.worker_lock) == up.pid, "the worker runs")
            assert f"(pid {up.pid}); `kill {up.pid}` ends it" in sandbox.refused("service", "up")
            assert (lock_holder(state.worker_lock), lock_holder(state.recall_lock)) == (up.pid, before)
            assert up.poll() is None
        assert lock_holder(state.recall_lock) is None


def test_its_recall_service_does_not_end_when_idle(sandbox: Sandbox) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "up") as up:
        wait_until(lambda: lock_holder(state.worker_lock) == up.pid, "the worker runs")
        assert Path(f"/proc/{lock_holder(state.recall_lock)}/cmdline").read_bytes().endswith(b"\0--stay\0")


def test_a_running_job_is_ended_before_the_worker_is_killed(sandbox: Sandbox) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "up") as up:
        wait_until(lambda: lock_holder(state.worker_lock) is not None, "the worker runs")
        with hold_lock(Path(state.vault_lock)):
            record_session(sandbox)
            wait_until(lambda: reflections(sandbox) == ["running"], "it will wait for the vault")
            up.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                up.wait(9)
        assert up.wait(WAIT_SECONDS) == 0
    assert reflections(sandbox) == ["done"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("runs", [True, False], ids=["while both run", "while it starts"])
def test_a_signal_or_the_end_of_its_terminal_ends_both(sandbox: Sandbox, number: signal.Signals, runs: bool) -> None:
    state = load_settings(sandbox.environment).state
    with sandbox.process("service", "up") as up:
        wait_until((Path(state.log) / "serve.stderr").exists, "the recall service is being started")
        if runs:
            wait_until(lambda: None not in (lock_holder(state.worker_lock), lock_holder(state.recall_lock)), "both run")
        up.send_signal(number)
        assert up.wait(WAIT_SECONDS) == 0
    time.sleep(3)  # One that is left takes its lock within this time.
    assert (lock_holder(state.worker_lock), lock_holder(state.recall_lock)) == (None, None)


def test_the_procfile_runs_commands_that_there_are() -> None:
    for line in (ROOT / "Procfile").read_text("utf-8").splitlines():
        words = line.partition(": memory ")[2].split()
        assert build_parser(words).parse_args(words).run


# After `memory uninstall` no command starts a background process until `memory init`


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Sandbox]:
    """Set up with one note; worker and recall service start by themselves. They are ended with the test."""
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault), "--history-days", "0")
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    yield sandbox
    sandbox.run("uninstall")


def running(sandbox: Sandbox) -> list[str]:
    """The background processes, found by what they run, so that one without a lock counts as well."""
    of_vault = f"MEMORY_VAULT_PATH={sandbox.vault}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and of_vault in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().split(b"\0")[-2].decode())
        except (OSError, IndexError):
            continue
    return sorted(found)


def state_of(sandbox: Sandbox) -> StatePaths:
    return load_settings(sandbox.environment).state


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="asks Linux what runs")
def test_no_command_starts_what_uninstall_has_stopped(live: Sandbox) -> None:
    live.memory("recall", "porcelain kettle")  # Until then the service may only be coming.
    assert running(live) == ["serve", "worker"]
    assert "stopped: worker, recall" in live.memory("uninstall")
    done = live.run("recall", "porcelain kettle")
    assert "fix/kettle.md" in done.stdout
    assert "memory: no recall service is started since `memory uninstall`; `memory init` sets all up again" in (
        done.stderr.splitlines()
    )
    assert running(live) == []
    live.memory("save", "fix", "teapot", "--body", "The teapot stays in the cellar.")
    live.memory("vault", "reindex")
    live.memory("list")
    live.memory("service", "worker", "--until-idle")
    assert running(live) == []
    assert live.diagnosis()["round trip"]["grade"] in ("ok", "note"), "what it starts for that it ends"
    assert running(live) == []
    live.memory("init", "--yes", "--vault", str(live.vault), "--history-days", "0")
    assert "uninstall" not in live.run("recall", "porcelain kettle").stderr
    state = state_of(live)
    assert None not in (lock_holder(state.worker_lock), lock_holder(state.recall_lock)), "init allows it again"


def test_where_nothing_was_installed_recall_starts_the_service_as_ever(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    try:
        assert "fix/kettle.md" in sandbox.memory("recall", "porcelain kettle")
        assert lock_holder(state_of(sandbox).recall_lock) is not None
    finally:
        sandbox.run("uninstall")
