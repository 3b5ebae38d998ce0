"""Helpers for tests of the queue: policies of three test kinds, state folders, worker processes."""

import os
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from memoryvault.runtime.layout import StatePaths
from memoryvault.tasks.queue.kinds import KindPolicy
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.records import Job
from memoryvault.tests.support import forked

WAIT_SECONDS = 60.0
WORKER = "memoryvault.tests.tasks.worker_program"


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
    base, cap = backoff
    return KindPolicy(kind, deadline, attempts, base, cap, concurrency, priority, optional={"key": "text"})


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
    """Poll until the condition holds; fail if it does not in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds} s in vain until {what}"
        time.sleep(0.01)


def make_due(queue_db: str | Path, kind: str, within: float = WAIT_SECONDS) -> None:
    """Make waiting jobs of this kind due, as if their delay of at most this many seconds had passed."""
    with closing(sqlite3.connect(queue_db)) as conn, conn:
        (last,) = conn.execute("SELECT max(run_at) FROM job WHERE state = 'queued' AND kind = ?", (kind,)).fetchone()
        assert last is None or last - time.time() < within, f"{kind} waits for {last - time.time():.0f} s"
        conn.execute("UPDATE job SET run_at = 0 WHERE state = 'queued' AND kind = ?", (kind,))


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and "Z" not in found.stdout


def pid_in(path: Path) -> int:
    """Return the pid that a test program writes, once it has."""
    wait_until(lambda: path.exists() and path.read_text().strip(), f"{path.name} names a pid")
    return int(path.read_text())


def only_job(ledger: Ledger) -> Job:
    (job,) = ledger.list_jobs()
    return job


@contextmanager
def worker_process(state: StatePaths, *arguments: str, kill_point: str | None = None) -> Iterator[forked.Forked]:
    """Start a real worker (`worker_program`) in its own process group, killed at the end."""
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    if kill_point:
        env |= {"MEMORY_TEST_MODE": "1", "MEMORY_TEST_KILL_POINT": kill_point}
    with tempfile.TemporaryFile() as errors, open(os.devnull, "r+b") as null:
        streams = [null.fileno(), null.fileno(), errors.fileno()]
        process = forked.start(WORKER, [state.root, *arguments], env=env, streams=streams, session=True)
        process.errors = errors
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_worker(state: StatePaths, *arguments: str, kill_point: str | None = None) -> tuple[int, str]:
    """Run a worker to its end; return exit status and standard error."""
    with worker_process(state, *arguments, kill_point=kill_point) as process:
        return process.wait(WAIT_SECONDS), process.complaint()
