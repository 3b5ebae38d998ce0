"""Workers of the shared queue as processes that a test kills, and the invariants that hold afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tests.support.network_worker import EFFECTS
from memoryvault.tests.tasks.support import wait_until


@dataclass
class Crew:
    """One worker for each conninfo, started by the prefix (`nsenter …`) of the same number."""

    conninfos: Sequence[str]
    lease_seconds: float
    work_seconds: float = 0.05
    prefixes: Sequence[Sequence[str]] = ()
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    started: int = 0

    def start(self, number: int) -> None:
        """A new process in the place of the one before."""
        self.started += 1
        prefix = self.prefixes[number] if self.prefixes else ()
        program = [*prefix, sys.executable, "-m", "memoryvault.tests.support.network_worker"]
        name = f"w{self.started}"
        self.names[number : number + 1] = [name]
        arguments = [self.conninfos[number], name, str(self.lease_seconds), str(self.work_seconds)]
        self.processes[number : number + 1] = [subprocess.Popen([*program, *arguments], cwd="/")]

    def start_all(self) -> None:
        """One for each conninfo."""
        for number in range(len(self.conninfos)):
            self.start(number)

    def kill(self, number: int) -> None:
        """SIGKILL."""
        self.processes[number].kill()
        self.processes[number].wait()

    def wait_for_claim(self, ledger: PostgresLedger, number: int, seconds: float = 15.0) -> None:
        """Until this one holds a job, so that a fault hits work; or none is left."""
        until = time.monotonic() + seconds
        query = "SELECT 1 FROM job WHERE state = 'running' AND starts_with(owner, %(name)s)"
        while time.monotonic() < until:
            with suppress(QueueUnavailable):
                if ledger.read(query, {"name": f"{self.names[number]}-"}) or not ledger.is_busy():
                    return
            time.sleep(0.005)

    def end(self) -> None:
        """Kill all."""
        for number in range(len(self.processes)):
            self.kill(number)


def patiently(act: Callable[[], bool]) -> bool:
    """False while the queue is out of reach."""
    try:
        return act()
    except QueueUnavailable:
        return False


def prepare(ledger: PostgresLedger, jobs: int) -> list[int]:
    """So many jobs, and the table of their effects."""
    with ledger.transaction() as conn:
        conn.execute(EFFECTS)
    return [ledger.enqueue("effect", {"key": str(number)}) for number in range(jobs)]


def assert_nothing_lost_or_doubled(ledger: PostgresLedger, jobs: Sequence[int], seconds: float = 60.0) -> None:
    """Wait until all are done; then each has had its effect once, and the faults have hit some that ran."""
    wait_until(
        lambda: patiently(lambda: ledger.counts()["effect"] == {"done": len(jobs)}), "every job is done", seconds
    )
    effects = ledger.read("SELECT job, count(*) FROM effect GROUP BY job ORDER BY job")
    assert effects == [(job, 1) for job in jobs], "one effect for each job"
    histories = [job.history for job in ledger.list(most=len(jobs))]
    assert all([entry["outcome"] for entry in history].count("done") == 1 for history in histories)
    assert any(entry["outcome"] == "lost" for history in histories for entry in history), "the faults have hit work"
