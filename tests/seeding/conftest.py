"""Two repositories beside a vault."""

from pathlib import Path

import pytest

from ..review.support import Bed, make_bed
from ..support.files import put


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"), CODEX_HOME=str(tmp_path / "codex"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return put(tmp_path / "shop" / ".git" / "HEAD").parents[1]


@pytest.fixture
def blog(tmp_path: Path) -> Path:
    return put(tmp_path / "blog" / ".git" / "HEAD").parents[1]
