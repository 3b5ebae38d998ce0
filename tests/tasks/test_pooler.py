"""The shared queue behind PgBouncer: several clients take turns in a session of the server and keep nothing in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tasks.postgres.status import status_of
from memoryvault.tasks.postgres.storage import LISTENER
from memoryvault.tests.support.pgbouncer import Mode, Pooler, pgbouncer
from memoryvault.tests.support.postgres import Cluster
from memoryvault.tests.tasks.support import POLICIES, state_in, wait_until
from memoryvault.tests.tasks.test_shared_loop import Ran, loop_over, serving, shared_ledger, worker_over

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

MODES: tuple[Mode, ...] = ("session", "transaction")
JOBS = 120
WORKERS = {"session": 2, "transaction": 6}
"""In a session the pooler lets only as many in as it has connections; the test itself needs one."""


@pytest.fixture(scope="module", params=MODES)
def pooler(request: pytest.FixtureRequest, postgres: Cluster) -> Iterator[Pooler]:
    with pgbouncer(postgres, request.param) as running:
        yield running


@pytest.fixture
def in_transactions(postgres: Cluster) -> Iterator[Pooler]:
    with pgbouncer(postgres, "transaction") as running:
        yield running


@pytest.mark.once
def test_clients_that_share_sessions_lose_no_job_and_double_none(pooler: Pooler) -> None:
    conninfo, done, failures = pooler.conninfo(), list[int](), list[str]()

    def work(ledger: PostgresLedger, name: str) -> None:
        try:
            while (taken := ledger.take_doorbell(lambda: name, 30.0)) is not None:
                if ledger.complete(taken[1]):
                    done.append(taken[1].job_id)
        except Exception as error:  # noqa: BLE001 - the test's own thread looks at it
            failures.append(str(error))

    with ExitStack() as stack:
        workers = WORKERS[pooler.mode]
        ledgers = [stack.enter_context(PostgresLedger(conninfo, policies=POLICIES)) for _ in range(workers)]
        jobs = [ledgers[0].enqueue("effect", {"key": str(number)}) for number in range(JOBS)]
        threads = [threading.Thread(target=work, args=(each, f"w{n}")) for n, each in enumerate(ledgers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        assert failures == []
        assert sorted(done) == sorted(jobs)
        assert ledgers[0].counts() == {"effect": {"done": JOBS}}


def test_a_silent_client_holds_no_lock_for_long_though_no_session_is_its_own(pooler: Pooler) -> None:
    with shared_ledger(pooler.conninfo()) as ledger, ledger.transaction() as conn:
        limits = conn.execute("""
            SELECT current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')
        """).fetchone()
    assert limits == ("25s", "30s")


def test_who_comes_after_us_finds_the_session_as_it_was(in_transactions: Pooler) -> None:
    conninfo = in_transactions.conninfo()
    with shared_ledger(conninfo) as ledger:
        ledger.enqueue("effect", {"key": "one"})
        found = ledger.read("SELECT current_setting('statement_timeout'), count(*) FROM pg_prepared_statements")
    assert found == [("0", 0)]


def test_without_a_pooler_a_worker_listens(postgres: Cluster, tmp_path: Path) -> None:
    conninfo, state = postgres.conninfo(), state_in(tmp_path / "state")
    with serving(worker_over(state, [loop_over(conninfo, {"effect": Ran()})]), state):
        wait_until(lambda: LISTENER in {thread.name for thread in threading.enumerate()}, "it listens")


def test_a_worker_finds_by_looking_what_no_notification_tells(pooler: Pooler, tmp_path: Path) -> None:
    conninfo, ran = pooler.conninfo(), Ran()
    state = state_in(tmp_path / "state")
    with shared_ledger(conninfo, "sofa") as other:
        worker = worker_over(state, [loop_over(conninfo, {"effect": ran})])
        with serving(worker, state):
            other.enqueue("effect", {"key": "one"})
            wait_until(lambda: ran.keys == ["one"], "the job has run")
            threads = {thread.name for thread in threading.enumerate()}
    assert LISTENER not in threads


def test_the_status_says_that_a_pooler_is_between(pooler: Pooler, postgres: Cluster) -> None:
    conninfo = pooler.conninfo()
    with shared_ledger(conninfo):
        status = status_of(conninfo, "desk")
    assert status.pooled
    assert not status_of(postgres.conninfo(), "desk").pooled
