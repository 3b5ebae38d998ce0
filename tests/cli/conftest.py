"""A sandbox for tests of the command as a process, and a vault for those that call `main`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoryvault.demo.sandbox import Sandbox
from memoryvault.runtime.process_lock import ProcessLock
from memoryvault.runtime.settings import load_settings
from memoryvault.tests.support.forked import ForkedSandbox


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty vault that commands of this process work on, in a home of its own."""
    sandbox = Sandbox(tmp_path)
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return sandbox.vault


@pytest.fixture
def queue(sandbox: ForkedSandbox) -> None:
    """The sandbox has a state folder and a queue."""
    sandbox.memory("jobs", "list")


@contextmanager
def worker_seems_to_run(sandbox: Sandbox) -> Iterator[None]:
    """What tells everybody that a worker runs; it does nothing."""
    lock = ProcessLock(load_settings(sandbox.environment).state.worker_lock)
    assert lock.acquire()
    try:
        yield
    finally:
        lock.release()
