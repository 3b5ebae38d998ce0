"""Data that is not in the repository: MEMORYVAULT_DATA names its folder."""

import os
from pathlib import Path

import pytest


def shared_data(path: str) -> Path:
    """Return a path in that folder; skip the test where none is named."""
    data = os.environ.get("MEMORYVAULT_DATA")
    if not data:
        pytest.skip("MEMORYVAULT_DATA is not set")
    return Path(data, path)


def shared_files(folder: str, pattern: str) -> list[Path]:
    """Return the files of `fixtures/` beside that folder; skip the test where none is named."""
    files = sorted((shared_data("").parent / "fixtures" / folder).glob(pattern))
    assert files, "MEMORYVAULT_DATA is set, but the fixtures beside it are missing"
    return files
