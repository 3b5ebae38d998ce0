"""PostgreSQL for tests: where it is not installed they are left out, unless it is said that it must be there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from memoryvault.bench.cluster import Cluster, binaries, free_port
from memoryvault.bench.cluster import cluster as running_cluster

__all__ = ["Cluster", "cluster", "free_port"]

REQUIRED = "MEMORYVAULT_TEST_POSTGRES"
"""Set by .ci/run once PostgreSQL is there: a test that does not find it then fails."""


@contextmanager
def cluster(
    *options: str,
    port: int = 5432,
    files: Mapping[str, Path] = MappingProxyType({}),
    hba: str = "",
    within: tuple[str, ...] = (),
) -> Iterator[Cluster]:
    """As `bench.cluster.cluster`."""
    if binaries() is None and not os.environ.get(REQUIRED):
        pytest.skip("PostgreSQL is not installed")
    with running_cluster(*options, port=port, files=files, hba=hba, within=within) as running:
        yield running
