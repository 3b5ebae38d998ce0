"""After `memory uninstall` no command starts a background process until `memory init`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.process_lock import lock_holder
from memoryvault.runtime.settings import load_settings

from ..support.sandbox import Sandbox

pytestmark = pytest.mark.slow


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


def test_init_allows_it_again(live: Sandbox) -> None:
    live.memory("uninstall")
    live.memory("init", "--yes", "--vault", str(live.vault), "--history-days", "0")
    assert "uninstall" not in live.run("recall", "porcelain kettle").stderr
    state = state_of(live)
    assert None not in (lock_holder(state.worker_lock), lock_holder(state.recall_lock))


def test_where_nothing_was_installed_recall_starts_the_service_as_ever(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, {"MEMORY_AUTOSTART": "true"})
    sandbox.memory("save", "fix", "kettle", "--body", "The porcelain kettle belongs upstairs.")
    try:
        assert "fix/kettle.md" in sandbox.memory("recall", "porcelain kettle")
        assert lock_holder(state_of(sandbox).recall_lock) is not None
    finally:
        sandbox.run("uninstall")
