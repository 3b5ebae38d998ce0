"""Short paths, so that the sockets lie inside the state folder and are deleted with it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.wakeup import wake_worker
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.tasks.support import POLICIES, state_in


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Replaces pytest's, whose folders are too deep for the name of a UNIX socket."""
    with tempfile.TemporaryDirectory(prefix="mv-") as folder:
        yield Path(folder)


@pytest.fixture
def settings(sandbox: ForkedSandbox) -> Settings:
    """Settings of an empty vault whose state folder exists."""
    settings = load_settings(sandbox.environment)
    settings.state.ensure()
    return settings


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    return state_in(tmp_path / "state")


@pytest.fixture
def ledger(state: StatePaths) -> Iterator[Ledger]:
    """The ledger of another process: a command, a hook."""
    with Ledger(state.queue_db, policies=POLICIES, wakeup=lambda: wake_worker(state.wake_socket)) as ledger:
        yield ledger
