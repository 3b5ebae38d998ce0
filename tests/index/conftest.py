"""Fixtures of the index tests."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoryvault.tests.index.bed import Bed, ServiceProcess


@pytest.fixture
def bed() -> Iterator[Bed]:
    """Its path is short: a socket lies in it."""
    root = Path(tempfile.mkdtemp(prefix="mv-"))
    made = Bed(root)
    yield made
    made.close()
    shutil.rmtree(root)


@pytest.fixture
def service(bed: Bed) -> Iterator[Callable[..., ServiceProcess]]:
    """Start a service on the bed; all are ended afterwards."""
    started: list[ServiceProcess] = []

    def start(*options: str) -> ServiceProcess:
        started.append(ServiceProcess(bed.vault, bed.state, *options))
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.fixture
def listening(service: Callable[..., ServiceProcess]) -> Callable[..., ServiceProcess]:
    """Start a service and wait until it listens, with its model."""

    def start(*options: str) -> ServiceProcess:
        started = service(*options)
        started.wait_until_listening()
        return started

    return start
