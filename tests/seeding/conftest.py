from __future__ import annotations

from pathlib import Path

import pytest

from ..review.support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"), CODEX_HOME=str(tmp_path / "codex"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository called shop."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    return root
