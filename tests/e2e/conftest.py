"""The machine, the stand-in model and the report of hook times."""

from collections.abc import Iterator
from typing import Any

import pytest

from ..support.stand_in_model import StandInModel
from .hook_times import HookListener, HookRun, table
from .install_client import ClientMissing, check_machine, client_binary
from .machine import Machine

_runs = pytest.StashKey[list[HookRun]]()
_logged = pytest.StashKey[list[dict[str, Any]]]()


@pytest.fixture(scope="session")
def client() -> None:
    """The real client; asked for in vain is a failure, never a skip."""
    try:
        check_machine()
        client_binary()
    except ClientMissing as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def model() -> Iterator[StandInModel]:
    with StandInModel() as serving:
        yield serving


@pytest.fixture
def hook_runs(request: pytest.FixtureRequest) -> Iterator[HookListener]:
    """What the client reports of its hooks; a hook that failed, timed out or was cancelled fails the test."""
    with HookListener() as listener:
        yield listener
    request.config.stash.setdefault(_runs, []).extend(listener.runs)
    failed = [run for run in listener.runs if run.succeeded != run.hooks]
    assert not failed, f"hooks that did not succeed: {failed}"


@pytest.fixture
def machine(
    client: None, model: StandInModel, hook_runs: HookListener, request: pytest.FixtureRequest
) -> Iterator[Machine]:
    with Machine(model.url, hook_runs.environment()) as prepared:
        yield prepared
        print(prepared.log())  # Shown with a failure only.
        request.config.stash.setdefault(_logged, []).extend(prepared.log_records())
    left = prepared.processes()
    assert not left, f"processes left behind: {left}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    runs = config.stash.get(_runs, [])
    if runs:
        terminalreporter.section("hook times")
        logged = config.stash.setdefault(_logged, [])
        for line in table(runs, logged):
            terminalreporter.write_line(line)
