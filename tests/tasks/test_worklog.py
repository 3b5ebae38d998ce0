"""The log of a worker that runs for months: a lost stderr does not stop a job."""

import errno
import logging
from pathlib import Path

import pytest

from memoryvault.runtime.errors import MemoryVaultError
from memoryvault.tasks.queue.worklog import JsonLines


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), BrokenPipeError(), MemoryVaultError("no output")])
def test_a_warning_that_cannot_be_told_stands_in_the_file_and_stops_nobody(tmp_path: Path, error: Exception) -> None:
    def refuse(line: str) -> None:
        raise error

    log = logging.getLogger("memoryvault.test-worklog")
    handler = JsonLines(str(tmp_path / "log"), refuse)
    log.addHandler(handler)
    try:
        log.warning("the disk is full")
    finally:
        log.removeHandler(handler)
    assert "the disk is full" in (tmp_path / "log").read_text("utf-8")
