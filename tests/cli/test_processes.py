"""The processes that commands start and stop in the background (cli/processes.py)."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memoryvault.cli import processes
from memoryvault.runtime.settings import load_settings
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.tasks.support import wait_until


def test_what_a_dying_worker_says_is_in_its_own_file(sandbox: ForkedSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks for it would not look among the words of the recall service."""
    settings = load_settings(sandbox.environment)
    dies = [sys.executable, "-I", "-c", "import sys; sys.exit('no room for a worker')"]
    monkeypatch.setattr(processes, "worker_command", lambda: dies)
    monkeypatch.setattr(processes, "START_SECONDS", 0.0)
    assert not processes.ensure_worker(settings)
    file = Path(settings.state.log) / "worker.stderr"
    wait_until(lambda: file.exists() and file.read_text(), "it has said so")
    assert file.read_text() == "no room for a worker\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_who_waits_for_a_process_that_is_slow_to_end_is_told(
    sandbox: ForkedSandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = load_settings(sandbox.environment).state
    state.ensure()
    slow = (
        "import fcntl, os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), os._exit(0)))\n"
        "lock = open(sys.argv[1], 'w')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print(os.getpid(), file=lock, flush=True)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setattr(processes, "SILENT_SECONDS", 0.1)
    with subprocess.Popen([sys.executable, "-c", slow, str(state.worker_lock)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        waiter = threading.Thread(target=process.wait)  # As the worker's own parent would.
        waiter.start()
        assert processes.stop_background(state, "worker", "recall") == ["worker"]
        waiter.join()
    assert capsys.readouterr().err.count("the worker finishes what it does") == 1
