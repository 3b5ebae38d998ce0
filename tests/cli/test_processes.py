"""The processes that commands start and stop in the background (cli/processes.py)."""

import sys
from pathlib import Path

import pytest

from memoryvault.cli import processes
from memoryvault.runtime.settings import load_settings
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.tasks.support import wait_until


def test_what_a_dying_worker_says_is_in_its_own_file(sandbox: ForkedSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks for it would not look among the words of the recall service."""
    settings = load_settings(sandbox.environment)
    dies = [sys.executable, "-I", "-c", "import sys; sys.exit('no room for a worker')"]
    monkeypatch.setattr(processes, "worker_command", lambda: dies)
    monkeypatch.setattr(processes, "START_SECONDS", 0.0)
    assert not processes.ensure_worker(settings)
    file = Path(settings.state.log) / "worker.stderr"
    wait_until(lambda: file.exists() and file.read_text(), "it has said so")
    assert file.read_text() == "no room for a worker\n"
    assert file.stat().st_mode & 0o777 == 0o600
