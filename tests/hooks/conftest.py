"""Fixtures of the hooks' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .support import Sandbox, sandbox_at


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with sandbox_at(tmp_path) as made:
        yield made
