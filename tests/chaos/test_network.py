"""The shared queue behind a network that fails: nothing is lost, nothing is done twice, nobody hangs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.postgres import connection
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tasks.queue.ledger import Claim
from memoryvault.tests.support.crew import Crew, assert_nothing_lost_or_doubled, patiently, prepare
from memoryvault.tests.support.network_worker import EFFECTS, finish
from memoryvault.tests.support.postgres import Cluster, cluster
from memoryvault.tests.support.proxy import Proxy, proxy
from memoryvault.tests.tasks.support import POLICIES, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.postgres]

LEASE_SECONDS = 0.8
SILENCE_SECONDS, STALLED_SECONDS = 1.5, 1


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.Impatient, "answer_seconds", SILENCE_SECONDS)
    monkeypatch.setattr(connection, "STALLED_SECONDS", STALLED_SECONDS)
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 2)


@dataclass
class Site:
    """A schema of the server, reached directly (`near`) and through a proxy of the test's own (`far`)."""

    near: PostgresLedger
    far: PostgresLedger
    wire: Proxy
    conninfo: str

    def claim(self, ledger: PostgresLedger, owner: str) -> Claim:
        taken = ledger.take_doorbell(lambda: owner, LEASE_SECONDS)
        assert taken is not None
        return taken[1]

    def effects(self) -> list[tuple[object, ...]]:
        with psycopg.connect(self.conninfo) as conn:
            return list(conn.execute("SELECT job, attempt, worker FROM effect ORDER BY job, attempt").fetchall())


@contextmanager
def site_at(server: Cluster) -> Iterator[Site]:
    conninfo = server.conninfo()
    with ExitStack() as stack:
        wire = stack.enter_context(proxy(server.socket))
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute(EFFECTS)
        near = stack.enter_context(PostgresLedger(conninfo, policies=POLICIES))
        far = stack.enter_context(PostgresLedger(server.through(conninfo, wire.port), policies=POLICIES))
        yield Site(near, far, wire, conninfo)


@pytest.fixture
def site(postgres: Cluster) -> Iterator[Site]:
    with site_at(postgres) as made:
        yield made


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that tests may stop; each starts it again."""
    with cluster() as running:
        yield running


def test_the_late_completion_of_one_that_was_partitioned_is_dropped(site: Site) -> None:
    job = site.near.enqueue("effect")
    zombie = site.claim(site.far, "far-1")
    site.wire.hold()
    wait_until(lambda: job in site.near.requeue_expired(), "the lease has expired")
    successor = site.claim(site.near, "near-1")
    assert successor.attempt == 2
    site.wire.heal()
    assert not finish(site.far, zombie, "far")
    assert site.far.heartbeat([zombie], LEASE_SECONDS) == [zombie]
    assert finish(site.near, successor, "near")
    assert not finish(site.far, zombie, "far")
    assert site.effects() == [(job, 2, "near")]
    assert site.near.get(job).state == "done"


def test_who_is_cut_off_in_mid_transaction_keeps_no_lock_for_longer_than_its_lease(site: Site) -> None:
    job = site.near.enqueue("effect", unique_key="k")
    claim = site.claim(site.far, "far-1")
    ended: list[object] = []

    def complete_into_a_partition() -> None:
        try:
            with site.far.transaction() as conn:
                conn.execute("INSERT INTO effect VALUES (%s, %s, 'far')", (claim.job_id, claim.attempt))
                assert site.far.complete(claim)
                site.wire.hold()
        except QueueUnavailable as error:
            ended.append(error)

    thread = threading.Thread(target=complete_into_a_partition)
    started = time.monotonic()
    thread.start()
    wait_until(lambda: job in site.near.requeue_expired(), "the job is free", 10.0)
    assert time.monotonic() - started < STALLED_SECONDS + LEASE_SECONDS + 3.0
    assert finish(site.near, site.claim(site.near, "near-1"), "near")
    thread.join(10.0)
    assert ended, "the commit that was swallowed is reported, not waited for"
    site.wire.heal()
    assert not finish(site.far, claim, "far")
    assert site.effects() == [(job, 2, "near")]


def test_a_server_that_says_nothing_is_given_up_and_found_again(site: Site) -> None:
    job = site.far.enqueue("effect", {"key": "before"})
    site.wire.hold()
    for _ in range(2):  # The present connection; then a new one, which is accepted and never answered.
        started = time.monotonic()
        with pytest.raises(QueueUnavailable, match="cannot be used"):
            site.far.enqueue("effect")
        assert time.monotonic() - started < SILENCE_SECONDS + connection.CONNECT_SECONDS + 2.0
    site.wire.heal()
    assert site.far.get(job).args == {"key": "before"}
    assert site.far.enqueue("effect") > job


@pytest.mark.parametrize("fault", ["cut", "reset"])
def test_a_connection_that_ends_in_mid_transaction_leaves_nothing_half_done(site: Site, fault: str) -> None:
    job = site.near.enqueue("effect")
    claim = site.claim(site.far, "far-1")
    with pytest.raises(QueueUnavailable):
        finish(site.far, claim, "far", before_completion=getattr(site.wire, fault))
    assert site.effects() == []
    assert site.near.get(job).state == "running"
    assert finish(site.far, claim, "far"), "the lease outlives the connection"
    assert site.effects() == [(job, 1, "far")]


def test_a_commit_whose_answer_was_lost_is_not_done_again(site: Site) -> None:
    job = site.near.enqueue("effect")
    claim = site.claim(site.far, "far-1")
    site.wire.lose_answers_after(b"COMMIT")
    with pytest.raises(QueueUnavailable):
        finish(site.far, claim, "far")
    site.wire.heal()
    wait_until(lambda: site.near.get(job).state == "done", "the server has committed it")
    assert not finish(site.far, claim, "far")
    assert site.effects() == [(job, 1, "far")]


def test_on_a_slow_line_leases_are_kept(site: Site) -> None:
    site.near.enqueue("effect")
    site.wire.delay(0.01)
    claim = site.claim(site.far, "far-1")
    for _ in range(4):
        time.sleep(LEASE_SECONDS / 3)
        assert site.far.heartbeat([claim], LEASE_SECONDS) == []
        assert site.near.requeue_expired() == []
    assert finish(site.far, claim, "far")


def test_a_large_answer_on_a_slow_line_is_no_silence(site: Site) -> None:
    with psycopg.connect(site.conninfo, autocommit=True) as conn:
        conn.execute("CREATE TABLE large AS SELECT repeat('x', 1500000) AS body")
    site.wire.delay(0.1)  # For each 64 KB: about two and a half seconds in all.
    started = time.monotonic()
    ((body,),) = site.far.read("SELECT body FROM large")
    assert len(body) == 1_500_000
    assert time.monotonic() - started > SILENCE_SECONDS


def test_jobs_survive_a_server_that_crashes_in_mid_job(own: Cluster) -> None:
    with site_at(own) as site:
        first, second = site.near.enqueue("effect"), site.near.enqueue("effect")
        claim = site.claim(site.far, "far-1")
        lost = site.claim(site.far, "far-2")
        own.stop("immediate")
        with pytest.raises(QueueUnavailable):
            finish(site.far, claim, "far")
        own.start()
        wait_until(lambda: patiently(lambda: finish(site.far, claim, "far")), "the server is found again")
        wait_until(lambda: lost.job_id in site.near.requeue_expired(), "the other's lease has expired")
        assert finish(site.near, site.claim(site.near, "near-1"), "near")
        assert [row[0] for row in site.effects()] == [first, second]


# ---- all of it at once, with processes


JOBS, WORKERS, ROUNDS = 160, 3, 10


def test_killed_partitioned_slowed_and_restarted_nothing_is_lost_or_doubled(own: Cluster) -> None:
    chance = random.Random(11)
    faults = ["kill", "hold", "delay", "reset", "cut", "refuse", "restart", "kill", "hold"]
    with ExitStack() as stack:
        conninfo = own.conninfo()
        ledger = stack.enter_context(PostgresLedger(conninfo, policies=POLICIES))
        jobs = prepare(ledger, JOBS)
        wires = [stack.enter_context(proxy(own.socket)) for _ in range(WORKERS)]
        crew = Crew([own.through(conninfo, wire.port) for wire in wires], LEASE_SECONDS)
        stack.callback(crew.end)
        crew.start_all()
        for turn in range(ROUNDS):
            number, fault = turn % WORKERS, faults[turn % len(faults)]
            time.sleep(chance.uniform(0.05, 0.3))
            crew.wait_for_claim(ledger, number, 5.0)
            if fault == "kill":
                crew.kill(number)
                crew.start(number)
            elif fault == "restart":
                own.stop("immediate")
                own.start()
            elif fault == "delay":
                wires[number].delay(0.02)
            else:
                getattr(wires[number], fault)()
            if fault in ("hold", "refuse"):  # Longer than a lease, while the others go on.
                time.sleep(LEASE_SECONDS * 1.5)
                wires[number].heal()
        for wire in wires:
            wire.heal()
        assert_nothing_lost_or_doubled(ledger, jobs)
