"""The machine and the stand-in model."""

from collections.abc import Iterator

import pytest

from ..support.stand_in_model import StandInModel
from .hook_runs import HookListener
from .install_client import ClientMissing, check_machine, client_binary
from .machine import Machine


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
def hook_runs() -> Iterator[HookListener]:
    """What the client reports of its hooks; a hook that failed, timed out or was cancelled fails the test."""
    with HookListener() as listener:
        yield listener
    failed = [run for run in listener.runs if run.succeeded != run.hooks]
    assert not failed, f"hooks that did not succeed: {failed}"


@pytest.fixture
def machine(client: None, model: StandInModel, hook_runs: HookListener) -> Iterator[Machine]:
    with Machine(model.url, hook_runs.environment()) as prepared:
        yield prepared
        print(prepared.log())  # Shown with a failure only.
    left = prepared.processes()
    assert not left, f"processes left behind: {left}"
