"""Shared by the tests of the queue: policies of three test kinds, state folders, worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryvault.tasks.kinds import KindPolicy
from memoryvault.tasks.ledger import Job, Ledger
from memoryvault.vault.layout import StatePaths

WAIT_SECONDS = 60.0


def policy(
    kind: str,
    *,
    attempts: int = 3,
    concurrency: int = 4,
    priority: int = 0,
    deadline: float = 20.0,
    backoff: tuple[float, float] = (0.05, 0.2),
) -> KindPolicy:
    """A policy whose jobs take the text arguments `key` and `slot`."""
    return KindPolicy(
        kind=kind,
        deadline_seconds=deadline,
        attempts=attempts,
        backoff_base_seconds=backoff[0],
        backoff_cap_seconds=backoff[1],
        concurrency=concurrency,
        priority=priority,
        in_child=False,
        required={},
        optional={"key": "text", "slot": "text"},
    )


POLICIES: Mapping[str, KindPolicy] = {
    "effect": policy("effect"),
    "child": policy("child"),
    "single": policy("single", concurrency=1),
    "urgent": policy("urgent", priority=10),
    "hasty": policy("hasty", deadline=0.4, attempts=2),
}


def state_in(folder: Path) -> StatePaths:
    """A state folder with all its parts."""
    state = StatePaths(folder)
    state.ensure()
    return state


def wait_until(condition: Callable[[], object], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Poll until it holds; fail if it does not in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds} s in vain until {what}"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and "Z" not in found.stdout


def pid_in(path: Path) -> int:
    """The pid that a test program wrote, once it has."""
    wait_until(lambda: path.exists() and path.read_text().strip(), f"{path.name} names a pid")
    return int(path.read_text())


def only_job(ledger: Ledger) -> Job:
    """The one job there is."""
    (job,) = ledger.list()
    return job


@contextmanager
def worker_process(
    state: StatePaths, *arguments: str, kill_point: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A real worker (`worker_program`) in a process group of its own, killed at the end."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    if kill_point:
        env |= {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill_point}
    process = subprocess.Popen(
        [sys.executable, "-m", "memoryvault.tests.tasks.worker_program", state.root, *arguments],
        env=env,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run_worker(state: StatePaths, *arguments: str, kill_point: str | None = None) -> tuple[int, str]:
    """Run a worker to its end; exit status and standard error."""
    with worker_process(state, *arguments, kill_point=kill_point) as process:
        _, errors = process.communicate(timeout=WAIT_SECONDS)
        return process.returncode, errors
