from __future__ import annotations

from pathlib import Path

import pytest

from .support import Bed, make_bed


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path)


@pytest.fixture
def ask(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> Bed:
    """The bed, whose vault commands of this process work on."""
    for name, value in bed.env.items():
        monkeypatch.setenv(name, value)
    return bed
