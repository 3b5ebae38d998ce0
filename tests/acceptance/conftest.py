from __future__ import annotations

from pathlib import Path

import pytest

from memoryvault.tests.support.forked import ForkedSandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> ForkedSandbox:
    """A home, a vault and a state folder of the test's own."""
    return ForkedSandbox(tmp_path)
