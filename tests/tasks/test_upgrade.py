"""Old and new versions side by side: the older one leaves, with one line."""

import threading
import time
from pathlib import Path

import pytest

from memoryvault import __version__
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.wakeup import wake_worker
from memoryvault.tasks.queue.worker import WorkerContext, installed_version, is_newer
from memoryvault.tests.tasks.support import POLICIES, state_in, wait_until
from memoryvault.tests.tasks.test_worker import serving

pytestmark = pytest.mark.slow


def test_versions_are_compared_by_their_numbers(tmp_path: Path) -> None:
    assert is_newer("0.10.0", than="0.9.9")
    assert is_newer("1.0.0rc1", than="0.9")
    for other in ("0.9.9", "0.9.8", "", "nonsense", "-1"):
        assert not is_newer(other, than="0.9.9")
    assert installed_version() == __version__
    assert installed_version(tmp_path / "being-replaced.py") == __version__


@pytest.mark.parametrize("sign", ["client", "package"])
def test_a_worker_finishes_what_it_runs_and_leaves_when_a_newer_version_comes(
    tmp_path: Path, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_in(tmp_path / "state")
    begun, proceed = threading.Event(), threading.Event()

    def handler(job: object) -> None:
        begun.set()
        proceed.wait(60)

    context = WorkerContext(state, workers=1, poll_seconds=0.1, lease_seconds=1.0, policies=POLICIES, schedules=())
    with Ledger(state.queue_db, policies=POLICIES) as ledger, serving(context, {"effect": handler}) as worker:
        first, second = ledger.enqueue("effect"), ledger.enqueue("effect")
        assert begun.wait(60)
        wake_worker(state.wake_socket, __version__)
        wake_worker(state.wake_socket, "0.0.1")
        time.sleep(0.3)
        assert not worker._leaving, "its own version and an older one change nothing"
        if sign == "client":
            wake_worker(state.wake_socket, "999.0")
        else:
            monkeypatch.setattr("memoryvault.tasks.queue.worker.installed_version", lambda: "999.0")
        wait_until(lambda: worker._leaving, "it has noticed")
        proceed.set()
        wait_until(lambda: not Path(state.wake_socket).exists(), "it has left")
        assert (ledger.get(first).state, ledger.get(second).state) == ("done", "queued")
