"""Machines of the test's own, which share a queue in a PostgreSQL server of the test's own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.tests.sharing.machines import Machines, Vault
from memoryvault.tests.support.postgres import Cluster


@pytest.fixture
def machines(postgres: Cluster) -> Iterator[Machines]:
    """Their folders have short names: the sockets of a state folder lie inside it."""
    with tempfile.TemporaryDirectory(prefix="mv-") as folder:
        yield Machines(Path(folder), postgres.conninfo())


@pytest.fixture(scope="module")
def alone(postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """The vault of a machine that knows no other."""
    return Machines(tmp_path_factory.mktemp("alone"), postgres.conninfo()).alone()
