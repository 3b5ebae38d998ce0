from pathlib import Path

import pytest

from ..review.support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    """`Obsidian/` with the user's own notes, and `Obsidian/MemoryVault/` in it."""
    root = tmp_path / "Obsidian"
    root.mkdir()
    return make_bed(root)


@pytest.fixture
def silent(tmp_path: Path) -> Bed:
    """The same in the mode `silent`."""
    root = tmp_path / "Obsidian"
    root.mkdir()
    return make_bed(root, MEMORY_REVIEW_MODE="silent")
