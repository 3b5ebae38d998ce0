from pathlib import Path

import pytest

from ..review.support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"), CODEX_HOME=str(tmp_path / "codex"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository called shop."""
    return _repository(tmp_path / "shop")


@pytest.fixture
def blog(tmp_path: Path) -> Path:
    """Another one."""
    return _repository(tmp_path / "blog")


def _repository(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    return root
