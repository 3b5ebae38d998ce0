"""A sandbox for tests of the command as a process, and a vault for those that call `main`."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.tests.support.forked import ForkedSandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> ForkedSandbox:
    """A home, a vault and a state folder of the test's own."""
    return ForkedSandbox(tmp_path)


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty vault that commands of this process work on, in a home of its own."""
    sandbox = Sandbox(tmp_path)
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return sandbox.vault
