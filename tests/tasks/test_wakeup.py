"""The worker's socket is only a hint to look for work, whoever sends to it."""

import os
import socket
import stat
from pathlib import Path

import pytest

from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.wakeup import Wakeup, wake_worker
from memoryvault.tasks.queue.worker import WorkerContext
from memoryvault.tests.tasks.support import POLICIES, wait_until
from memoryvault.tests.tasks.test_worker import nothing, serving

NONSENSE = (b"", b"\0" * 60_000, b"\xff\xfe 1", b"1 nonsense", b"1 0.0.1", b"1 \x1b[2J9.9", b'{"op": "stop"}', b"stop")


def test_only_the_user_can_ring(state: StatePaths) -> None:
    wakeup = Wakeup(state.wake_socket)
    wakeup.open()
    try:
        assert stat.S_IMODE(os.stat(state.wake_socket).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(state.wake_socket)).st_mode) == 0o700
    finally:
        wakeup.close()


def _done(ledger: Ledger) -> set[int]:
    return {job.id for job in ledger.list_jobs(["done"])}


@pytest.mark.slow
def test_a_datagram_wakes_the_worker_and_does_nothing_else(state: StatePaths) -> None:
    """Except one that names a newer version: the worker leaves for it, which is how an upgrade takes over."""
    setting = WorkerContext(state, poll_seconds=30.0, policies=POLICIES, schedules=())
    with Ledger(state.queue_db, policies=POLICIES) as ledger, serving(setting, {"effect": nothing}):
        for words in NONSENSE:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.sendto(words, state.wake_socket)
            job = ledger.enqueue("effect", {"key": f"after {words[:20]!r}"})
            wake_worker(state.wake_socket)
            # B023: the closure is waited for within the turn
            wait_until(lambda: job in _done(ledger), f"a job is done after {words[:20]!r}")  # noqa: B023
        assert sum(count for _, _, count in ledger.live_counts()) == 0, "no job came of any of them"
        wake_worker(state.wake_socket, "999.0")
        wait_until(lambda: not Path(state.wake_socket).exists(), "it makes room for a newer one")
