"""The ledger in PostgreSQL, under what SQLite's one writer never sees: many claimers at once, a server that goes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.postgres import schema
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tasks.queue.ledger import LedgerRules
from memoryvault.tests.support.postgres import Cluster
from memoryvault.tests.tasks.support import POLICIES

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

LEASE_SECONDS = 30.0


def open_ledger(conninfo: str) -> PostgresLedger:
    return PostgresLedger(conninfo, policies=POLICIES)


def in_processes(count: int, conninfo: str, effects: Path, seconds: float = 1.0) -> list[subprocess.Popen[bytes]]:
    program = [sys.executable, "-m", "memoryvault.tests.tasks.shared_worker_program", conninfo]
    return [subprocess.Popen([*program, f"w{number}", str(effects), str(seconds)]) for number in range(count)]


def test_four_workers_run_each_job_once(conninfo: str, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    with open_ledger(conninfo) as ledger:
        jobs = [ledger.enqueue("effect", {"key": str(number)}) for number in range(200)]
        for worker in in_processes(4, conninfo, effects):
            assert worker.wait(60) == 0
        assert ledger.counts() == {"effect": {"done": 200}}
    assert Counter(effects.read_text().split("\n")[:-1]) == Counter(f"{job} 1" for job in jobs)


def test_the_jobs_of_a_killed_worker_go_to_the_others(conninfo: str, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    with open_ledger(conninfo) as ledger:
        for number in range(300):
            ledger.enqueue("effect", {"key": str(number)})
        workers = in_processes(3, conninfo, effects, 2.0)
        until = time.monotonic() + 30
        while ledger.counts()["effect"].get("done", 0) < 30:
            assert time.monotonic() < until
            time.sleep(0.01)
        workers[0].kill()
        workers[0].wait()
        ledger.requeue_expired([f"w{n}-{m}" for n in (1, 2) for m in range(400)], all_held_elsewhere=True)
        for worker in workers[1:]:
            assert worker.wait(60) == 0
        assert ledger.counts() == {"effect": {"done": 300}}
    lines = effects.read_text().split()
    assert len(set(lines[::2])) == 300


def test_of_one_key_one_is_queued_and_one_runs_however_many_ask(conninfo: str) -> None:
    errors: list[Exception] = []

    def ask() -> None:
        try:
            with open_ledger(conninfo) as ledger:
                for _ in range(30):
                    ledger.enqueue("effect", {"key": "same"}, unique_key="same")
                    taken = ledger.take_doorbell(lambda: f"t{threading.get_ident()}", LEASE_SECONDS)
                    if taken is not None:
                        ledger.complete(taken[1])
        except Exception as error:  # noqa: BLE001  shown by the test
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with open_ledger(conninfo) as ledger:
        live = ledger.list(("queued", "running"))
        assert len(live) <= 1
        assert "dead" not in ledger.counts()["effect"]


def test_a_kind_with_a_limit_keeps_it_over_all_workers(conninfo: str) -> None:
    ledgers = [open_ledger(conninfo) for _ in range(4)]
    try:
        for _ in range(8):
            ledgers[0].enqueue("single")
        with psycopg.connect(conninfo, autocommit=True) as conn:
            conn.execute("UPDATE job SET rung_at = NULL")
        start = threading.Barrier(4)
        claims = []

        def claim(ledger: LedgerRules) -> None:
            start.wait()
            for job_id in range(1, 9):
                got = ledger.claim(job_id, f"o{id(ledger)}-{job_id}", LEASE_SECONDS)
                if hasattr(got, "attempt"):
                    claims.append(got)

        threads = [threading.Thread(target=claim, args=(ledger,)) for ledger in ledgers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(claims) == 1
    finally:
        for ledger in ledgers:
            ledger.close()


def test_workers_that_start_at_once_migrate_once(postgres: Cluster) -> None:
    conninfo = postgres.conninfo()
    errors: list[Exception] = []

    def begin() -> None:
        try:
            open_ledger(conninfo).close()
        except Exception as error:  # noqa: BLE001  shown by the test
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with psycopg.connect(conninfo) as conn:
        assert conn.execute("SELECT version FROM migration").fetchall() == [
            (number + 1,) for number in range(schema.VERSION)
        ]


def test_a_newer_schema_is_refused(conninfo: str) -> None:
    open_ledger(conninfo).close()
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute("INSERT INTO migration VALUES (99, 0)")
    with pytest.raises(QueueUnavailable, match="has schema 99"):
        open_ledger(conninfo)


def test_a_server_that_was_restarted_is_found_again(own: Cluster) -> None:
    conninfo = own.conninfo()
    with open_ledger(conninfo) as ledger:
        job = ledger.enqueue("effect")
        own.stop()
        with pytest.raises(QueueUnavailable, match="the shared queue cannot be used"):
            ledger.enqueue("effect")
        own.start()
        assert ledger.get(job).state == "queued"
        assert ledger.enqueue("effect") > job


def test_no_message_holds_the_password(postgres: Cluster) -> None:
    with pytest.raises(QueueUnavailable) as caught:
        open_ledger("postgresql://owner:geheimnis@127.0.0.1:1/postgres")
    assert "geheimnis" not in str(caught.value)
    assert caught.value.__cause__ is None
