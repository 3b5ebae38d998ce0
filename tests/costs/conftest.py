from pathlib import Path

import pytest

from ..review.support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))
