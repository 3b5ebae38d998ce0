"""Short paths: see tests/tasks/conftest.py."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Replaces pytest's, whose folders are too deep for the name of a UNIX socket."""
    with tempfile.TemporaryDirectory(prefix="mv-") as folder:
        yield Path(folder)
