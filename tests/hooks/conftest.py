"""Fixtures of the hooks' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """An untouched home, vault and project."""
    return Sandbox(tmp_path)
