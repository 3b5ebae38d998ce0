"""The metrics page: on loopback, for this machine only, and true."""

from __future__ import annotations

import http.client
import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memoryvault.tasks.queue.job import Dead, RunningJob
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.metrics import ADDRESS, HookTimes, MetricsServer
from memoryvault.tasks.queue.worker import WorkerContext
from memoryvault.tests.tasks.support import POLICIES, wait_until
from memoryvault.tests.tasks.test_worker import serving
from memoryvault.vault import hooklog
from memoryvault.vault.layout import StatePaths
from memoryvault.vault.settings import SETTINGS


@pytest.fixture
def port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind((ADDRESS, 0))
        return int(sock.getsockname()[1])


def get(port: int, path: str = "/metrics", host: str | None = None) -> tuple[int, str]:
    """One request with this Host header."""
    with closing(http.client.HTTPConnection(ADDRESS, port, timeout=5)) as connection:
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host or f"{ADDRESS}:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture
def page(state: StatePaths, port: int) -> Iterator[str]:
    def handler(job: RunningJob) -> None:
        if job.args.get("key") == "hopeless":
            raise Dead("no use")

    setting = WorkerContext(state, poll_seconds=0.1, policies=POLICIES, schedules=(), metrics_port=port)
    with Ledger(state.queue_db, policies=POLICIES) as ledger, serving(setting, {"effect": handler}):
        ledger.pause("single")
        ledger.enqueue("single")
        done, dead = ledger.enqueue("effect"), ledger.enqueue("effect", {"key": "hopeless"})
        wait_until(lambda: (ledger.get(done).state, ledger.get(dead).state) == ("done", "dead"), "both have ended")
        hooklog.append(state.log_file, "info", "hook", hook="Stop", ms=21.5, result="ok")
        yield get(port)[1]


def test_it_counts_what_the_queue_did(page: str) -> None:
    lines = page.splitlines()
    assert 'memoryvault_jobs{kind="effect",state="dead"} 1' in lines
    assert 'memoryvault_jobs{kind="single",state="queued"} 1' in lines
    assert 'memoryvault_job_attempts_total{kind="effect",outcome="done"} 1' in lines
    assert 'memoryvault_job_attempts_total{kind="effect",outcome="dead"} 1' in lines
    assert 'memoryvault_job_duration_seconds_count{kind="effect"} 2' in lines
    assert 'memoryvault_hook_duration_seconds_bucket{event="Stop",le="0.025"} 1' in lines
    assert any(line.startswith('memoryvault_job_oldest_due_seconds{kind="single"} ') for line in lines)
    assert "memoryvault_spool_files 0" in lines


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    server = MetricsServer(0, lambda: "a page\n")
    server.start()
    yield server
    server.stop()


def test_a_web_page_that_names_another_host_is_refused(server: MetricsServer) -> None:
    """A name of the page's own that leads to 127.0.0.1 is how a browser would be made to ask."""
    assert server.port is not None
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1:1", "127.0.0.1", "", f"[::1]:{server.port}"):
        assert get(server.port, host=host or " ")[0] == 403, host
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}"):
        assert get(server.port, host=host) == (200, "a page\n")
    assert get(server.port, "/")[0] == 404
    for method in ("POST", "PUT", "DELETE"):
        with closing(http.client.HTTPConnection(ADDRESS, server.port, timeout=5)) as connection:
            connection.request(method, "/metrics")
            assert connection.getresponse().status == 501


@pytest.mark.skipif(sys.platform != "linux", reason="all of 127.0.0.0/8 is this machine there")
def test_it_listens_on_one_address_of_this_machine_alone(server: MetricsServer) -> None:
    assert server.port is not None
    for address in ("127.0.0.2", "::1"):
        with pytest.raises(OSError):
            socket.create_connection((address, server.port), timeout=2).close()
    assert get(server.port)[0] == 200


def test_it_is_off_unless_a_port_is_named() -> None:
    (row,) = (row for row in SETTINGS if row.name == "queue.metrics_port")
    assert row.default == 0


def test_a_taken_port_does_not_keep_the_worker_from_working(state: StatePaths, port: int) -> None:
    with closing(socket.socket()) as other:
        other.bind((ADDRESS, port))
        other.listen()
        setting = WorkerContext(state, poll_seconds=0.1, policies=POLICIES, schedules=(), metrics_port=port)
        with Ledger(state.queue_db, policies=POLICIES) as ledger, serving(setting, {"effect": lambda job: None}):
            job = ledger.enqueue("effect")
            wait_until(lambda: ledger.get(job).state == "done", "the job is done")


def test_hook_times_go_on_over_a_rotation_and_torn_lines(tmp_path: Path) -> None:
    log = tmp_path / "memoryvault.log"
    line = json.dumps({"event": "hook", "hook": "Stop", "ms": 20})
    log.write_text(line + "\n")
    times = HookTimes(str(log))
    assert times.lines()[1:] == []
    with log.open("a") as file:
        file.write(f"not json\n{line}\n{line[:10]}")
    assert 'memoryvault_hook_duration_seconds_count{event="Stop"} 1' in times.lines()
    log.rename(tmp_path / "old")
    log.write_text(line + "\n")
    assert 'memoryvault_hook_duration_seconds_count{event="Stop"} 2' in times.lines()
