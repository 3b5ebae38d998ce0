"""The short version of `make chaos`, without the comparison: every named point, once and in half a minute."""

import subprocess
import sys

import pytest

from memoryvault.bench.chaos.rounds import POINTS


@pytest.mark.once
@pytest.mark.slow
def test_killed_everywhere_nothing_is_lost_doubled_or_left() -> None:
    command = [sys.executable, "-m", "memoryvault.bench.chaos", "--short", "--no-plain"]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| this one |")]
    kills, _, memories, lost, doubled, orphans = (int(cell) for cell in row.split("|")[2:-1])
    assert kills >= len(POINTS)
    assert memories >= len(POINTS)
    assert (lost, doubled, orphans) == (0, 0, 0)
    assert "Not reached" not in done.stdout
