"""The shared queue on machines with addresses of their own, whose cables are pulled (Linux's network namespaces)."""

from __future__ import annotations

import pwd
import time
from contextlib import ExitStack

import pytest

from memoryvault.bench.cluster import SERVERS_USER
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tests.support.crew import Crew, assert_nothing_lost_or_doubled, prepare
from memoryvault.tests.support.namespaces import NETWORK, SERVER_ADDRESS, lan, why_not
from memoryvault.tests.support.postgres import cluster
from memoryvault.tests.tasks.support import POLICIES, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.postgres]

LEASE_SECONDS = 0.8
JOBS, MACHINES, WORK_SECONDS = 60, 3, 0.2


def test_machines_that_die_slow_down_or_lose_their_cable_lose_and_double_nothing() -> None:
    if reason := why_not():
        pytest.skip(reason)
    with ExitStack() as stack:
        network = stack.enter_context(lan(MACHINES))
        account = pwd.getpwnam(SERVERS_USER)
        server = stack.enter_context(
            cluster(
                f"listen_addresses={SERVER_ADDRESS}",
                hba=f"host all all {NETWORK} trust",
                within=tuple(network.within_switch(account.pw_uid, account.pw_gid)),
            )
        )
        near = server.conninfo()  # The socket is a file: it is reached from any namespace.
        far = near.replace(f"host={server.folder}", f"host={SERVER_ADDRESS} sslmode=disable")
        ledger = stack.enter_context(PostgresLedger(near, policies=POLICIES))
        addresses = {f"10.77.0.{number + 2}" for number in range(MACHINES)}
        crew = Crew(
            [far] * MACHINES, LEASE_SECONDS, WORK_SECONDS, [network.within(number) for number in range(MACHINES)]
        )
        stack.callback(crew.end)
        crew.start_all()
        wait_until(lambda: clients(ledger) == addresses, "each has come from an address of its own", 30.0)
        jobs = prepare(ledger, JOBS)
        crew.wait_for_claim(ledger, 0)
        network.unplug(0)
        network.throttle(1, "400kbit")
        time.sleep(LEASE_SECONDS * 2)
        crew.wait_for_claim(ledger, 2)
        crew.kill(2)
        network.plug(0)
        crew.start(2)
        network.unplug(1)
        time.sleep(LEASE_SECONDS * 2)
        network.plug(1)
        assert_nothing_lost_or_doubled(ledger, jobs)


def clients(ledger: PostgresLedger) -> set[str]:
    rows = ledger.read("SELECT host(client_addr) FROM pg_stat_activity WHERE client_addr IS NOT NULL")
    return {row[0] for row in rows}
