from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox

from .support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path)


@pytest.fixture
def ask(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> Bed:
    """The bed as the vault for commands in this process."""
    bed.enter(monkeypatch)
    return bed


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return ForkedSandbox(tmp_path)
