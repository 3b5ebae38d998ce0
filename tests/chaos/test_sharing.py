"""A backfill that machines share over a network that fails: the vault is the one that a machine alone comes to."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from memoryvault.tests.sharing.machines import Machine, Machines, fill, url_of
from memoryvault.tests.support.postgres import Cluster, cluster
from memoryvault.tests.support.proxy import Proxy, proxy
from memoryvault.tests.tasks.support import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.postgres]

SESSIONS = 40
PASSWORD = "geheimnis-4711"


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that tests may stop; each starts it again."""
    with cluster() as running:
        yield running


@dataclass
class Running:
    """A machine whose worker is killed and started again."""

    machine: Machine
    wire: Proxy
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memoryvault", "service", "worker"],
            env=self.machine.environment,
            cwd=self.machine.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def far(conninfo: str, wire: Proxy) -> str:
    """The address by way of the proxy, with a password, which the server does not ask for there."""
    user, options = conninfo_to_dict(conninfo)["user"], url_of(conninfo).partition("options=")[2]
    return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{wire.port}/postgres?options={options}"


def test_machines_killed_and_cut_off_come_to_the_vault_of_one_alone(own: Cluster) -> None:
    chance = random.Random(5)
    conninfo = own.conninfo()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mv-")))
        machines = Machines(root, conninfo)
        running = []
        for name in ("home", "one", "two"):
            wire = stack.enter_context(proxy(own.socket))
            share = {"share": "*", "work": False} if name == "home" else {}
            machine = machines.make(name, url=far(machines.login(name), wire), **share)
            running.append(Running(machine, wire))
            stack.callback(running[-1].kill)
        home = running[0].machine
        fill(home, SESSIONS)
        home.backfill()
        for each in running:
            each.start()
        wait_until(lambda: asked(conninfo, "SELECT count(*) FROM content"), "words have left", 60.0)
        shown = seen_from_outside([each.process.pid for each in running if each.process])
        for turn in range(6):
            time.sleep(chance.uniform(0.1, 0.6))
            victim, fault = running[turn % 3], ("kill", "hold", "reset", "restart", "refuse")[turn % 5]
            if fault == "kill":
                victim.kill()
                victim.start()
            elif fault == "restart":
                own.stop("immediate")
                own.start()
            else:
                getattr(victim.wire, fault)()
                if fault != "reset":  # Longer than a lease, which is two seconds here.
                    time.sleep(2.5)
                    victim.wire.heal()
            shown += seen_from_outside([each.process.pid for each in running if each.process])
        wait_until(
            lambda: not home.jobs("reflect.corpus") + home.jobs("corpus.settle"), "all is mined and settled", 120.0
        )
        wait_until(
            lambda: not asked(conninfo, "SELECT count(*) FROM job WHERE state IN ('queued', 'running')"),
            "nothing is left in the shared queue",
            60.0,
        )
        for each in running:
            each.kill()
        assert home.jobs("reflect.corpus", "done") == SESSIONS
        alone = machines.make("alone", url="")
        fill(alone, SESSIONS)
        alone.backfill()
        assert alone.work() == 0
        assert home.notes() == alone.notes()
        assert running[1].machine.notes() == running[2].machine.notes() == {}
        assert asked(conninfo, "SELECT count(*) FROM content") == 0
        assert asked(conninfo, "SELECT count(*) FROM job WHERE kind = 'share.mine' AND state = 'done'") > 0
        for log in root.rglob("*.log*"):
            shown += log.read_text("utf-8", "replace")
        assert sys.platform != "linux" or "MEMORY_CONFIG=" in shown, "environments were seen"
        assert "the shared queue" in shown, "the logs have told of the faults"
        assert PASSWORD not in shown


def asked(conninfo: str, sql: str) -> int:
    """0 while the server is away."""
    with suppress(psycopg.Error), psycopg.connect(conninfo, autocommit=True) as conn:
        row = conn.execute(sql.encode()).fetchone()
        return int(row[0]) if row else 0
    return 0


def seen_from_outside(pids: list[int]) -> str:
    """Arguments and environment of these processes and of their children."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    found = []
    for pid, parent in parents.items():
        if pid in pids or parent in pids:
            for name in ("cmdline", "environ"):
                with suppress(OSError):
                    found.append(Path(f"/proc/{pid}/{name}").read_bytes().decode("utf-8", "replace"))
    return "\n".join(found)
