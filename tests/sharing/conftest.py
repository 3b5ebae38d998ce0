"""Machines of the test's own, which share a queue in a PostgreSQL server of the test's own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.tests.sharing.machines import Machines
from memoryvault.tests.support.postgres import Cluster


@pytest.fixture
def machines(postgres: Cluster) -> Iterator[Machines]:
    """Their folders have short names: the sockets of a state folder lie inside it."""
    with tempfile.TemporaryDirectory(prefix="mv-") as folder:
        yield Machines(Path(folder), postgres.conninfo())
