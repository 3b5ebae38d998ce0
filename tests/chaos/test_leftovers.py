"""A day of work: after thousands of events and a dozen restarts nothing is left behind."""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from memoryvault.bench.chaos.bed import Bed, Session
from memoryvault.bench.chaos.restarts import KILLED, come_and_go
from memoryvault.bench.chaos.rounds import POINTS
from memoryvault.hooks.enqueue import spool_reflection
from memoryvault.tasks.queue.wakeup import wake_worker
from memoryvault.vault.marker import touch_marker

EVENTS = 2_000
ROUNDS = 3
RESTARTS = 12
GROWTH_LIMIT_BYTES = 800_000
"""In the best of the rounds, each with a third of the events: a heap grows once by some MB, a leak in every round."""


@pytest.fixture
def bed() -> Iterator[Bed]:
    """Its path is short: a socket lies in it."""
    with tempfile.TemporaryDirectory(prefix="mv-") as folder:
        bed = Bed(Path(folder) / "bed", random.Random(7))
        yield bed
        bed.stop_all()


def resident_bytes(pid: int) -> int:
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(found.stdout) * 1024


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def quiet(bed: Bed, seconds: float = 120.0) -> None:
    """Wait until the worker has taken in the spool and has nothing to do."""
    until = time.monotonic() + seconds
    while True:
        with bed.ledger() as ledger:
            if not os.listdir(bed.state.spool) and not ledger.is_busy():
                return
        assert time.monotonic() < until
        time.sleep(0.1)


def events(bed: Bed, session: Session, count: int) -> None:
    """What a hook does for an event, without the cost of its process; the other test uses some dozen real ones."""
    for number in range(count):
        touch_marker(bed.state.markers, session.id)
        spool_reflection(bed.state.spool, session.id, 90.0 if number % 10 else None)
        wake_worker(bed.state.wake_socket)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_and_descriptors_of_a_busy_worker_are_flat(bed: Bed) -> None:
    worker, service = bed.worker(), bed.service()
    session = bed.new_session()
    quiet(bed)
    events(bed, session, EVENTS // 10)
    quiet(bed)
    descriptors, service_descriptors = open_files(worker), open_files(service)
    memory = [resident_bytes(worker)]
    for _ in range(ROUNDS):
        events(bed, session, EVENTS // ROUNDS)
        quiet(bed)
        memory.append(resident_bytes(worker))
    growth = [after - before for before, after in pairwise(memory)]
    print(f"grew by {growth} bytes")
    assert min(growth) < GROWTH_LIMIT_BYTES
    assert open_files(worker) <= descriptors + 1
    assert open_files(service) <= service_descriptors + 1


@pytest.mark.slow
def test_restarts_leave_nothing_behind(bed: Bed) -> None:
    """Four times as many with `make chaos`."""
    assert come_and_go(bed, RESTARTS) == []
    assert bed.tally.total == 2 * (RESTARTS // KILLED)


# The short version of `make chaos`, without the comparison: every named point, once and in half a minute


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
