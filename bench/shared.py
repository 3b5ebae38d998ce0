"""The queue that machines share: `python -m memoryvault.bench.shared [claims] [idle] [backfill]`.

A temporary PostgreSQL cluster below the temporary folder, that syncs as a real one does. Claims: empty jobs taken by
1 to 8 processes. Idle: what a worker that has nothing to do costs the server. Backfill: the sessions of
MEMORYVAULT_DATA mined by one machine alone, and by 2 and 4 that share them; machines are worker processes with a home,
a state folder and a vault of their own. All of it runs on this one machine, so what they gain ends with its cores: the
processor time at home says what more machines could gain at most. What is compared is measured in turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..demo.sandbox import Sandbox
from ..tasks.queue.kinds import UNLIMITED, KindPolicy
from ..tasks.queue.ledger import NewJob
from .cluster import Cluster, binaries, cluster
from .queue import Report

PROCESSES = (1, 2, 4, 8)
MACHINES = (1, 2, 4)
JOBS = 2000
ROUNDS = 3
LEASE_SECONDS = 60.0
BACKFILL_SECONDS = 900.0
ROUND_TRIPS_MS = (0.5, 20.0, 100.0)
"""A network of a house; of a country; across an ocean."""
POLICIES = {"noop": KindPolicy("noop", 60.0, 5, 0.1, 1.0, UNLIMITED, 0, False, {}, {"slot": "text"})}


# ---- claims


def run_claimer(conninfo: str, name: str) -> int:
    """`--claimer CONNINFO NAME`: says it is ready, waits for a line, then takes and ends jobs until none is left."""
    from ..tasks.postgres.ledger import PostgresLedger

    numbers = itertools.count()
    done = 0
    with PostgresLedger(conninfo, policies=POLICIES) as ledger:
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.monotonic()
        ended, processor = started, time.process_time()
        while (taken := ledger.take_doorbell(lambda: f"{name}-{next(numbers)}", LEASE_SECONDS)) is not None:
            ledger.complete(taken[1])
            done += 1
            ended = time.monotonic()
    cpu = time.process_time() - processor
    print(json.dumps({"done": done, "started": started, "ended": ended, "cpu": cpu}))
    return 0


@dataclass(frozen=True)
class Claims:
    """One run of empty jobs, of all processes together."""

    rate: float
    """Jobs a second."""
    client_ms: float
    server_ms: float | None
    """Processor time for a job."""


def claims_of(server: Cluster, processes: int, jobs: int) -> Claims:
    """Take and end so many jobs."""
    from ..tasks.postgres.ledger import PostgresLedger

    conninfo = server.conninfo()
    with PostgresLedger(conninfo, policies=POLICIES) as ledger:
        ledger.enqueue_all(NewJob("noop", {}) for _ in range(jobs))
    command = [sys.executable, "-m", "memoryvault.bench.shared", "--claimer", conninfo]
    before = server.processor_seconds()
    with ExitStack() as stack:
        claimers = [
            stack.enter_context(
                subprocess.Popen([*command, f"c{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for number in range(processes)
        ]
        for claimer in claimers:
            assert claimer.stdout is not None
            claimer.stdout.readline()
        for claimer in claimers:
            assert claimer.stdin is not None
            claimer.stdin.write("go\n")
            claimer.stdin.flush()
        told = [json.loads(claimer.communicate()[0]) for claimer in claimers]
    if sum(one["done"] for one in told) != jobs:
        raise SystemExit(f"{sum(one['done'] for one in told)} of {jobs} jobs were done")
    seconds: float = max(one["ended"] for one in told) - min(one["started"] for one in told)
    time.sleep(0.5)  # Until the server has buried the connections' processes.
    after = server.processor_seconds()
    return Claims(
        jobs / seconds,
        sum(one["cpu"] for one in told) / jobs * 1000,
        None if before is None or after is None else (after - before) / jobs * 1000,
    )


class _Counted:
    """A connection that counts what it is asked: each is a trip to the server and back."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self.trips = 0

    def execute(self, *arguments: Any) -> Any:
        self.trips += 1
        return self._conn.execute(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conn, name)


def trips_of_a_job(server: Cluster, jobs: int = 50) -> float:
    """Trips to the server for taking a job and ending it."""
    from ..tasks.postgres.ledger import PostgresLedger

    numbers = itertools.count()
    with PostgresLedger(server.conninfo(), policies=POLICIES) as ledger:
        ledger.enqueue_all(NewJob("noop", {}) for _ in range(jobs))
        counted = _Counted(ledger._conn)
        ledger._conn = counted  # type: ignore[assignment]
        for _ in range(jobs):
            taken = ledger.take_doorbell(lambda: f"t-{next(numbers)}", LEASE_SECONDS)
            assert taken is not None
            ledger.complete(taken[1])
    return counted.trips / jobs


def claims(report: Report, server: Cluster, jobs: int, rounds: int) -> None:
    """Claims a second against the number of processes, and what the way to the server costs."""
    found: dict[int, list[Claims]] = {processes: [] for processes in PROCESSES}
    for _ in range(rounds):
        for processes in PROCESSES:
            found[processes].append(claims_of(server, processes, jobs))
    print(
        f"{jobs} empty jobs, each claimed and ended in two transactions that the server syncs; over its UNIX socket; "
        f"median of {rounds} runs in turns. Server and workers share {os.cpu_count()} cores.\n"
    )
    one = statistics.median(run.rate for run in found[1])
    rows: list[list[object]] = []
    for processes, runs in found.items():
        rate = statistics.median(run.rate for run in runs)
        of_server = [run.server_ms for run in runs if run.server_ms is not None]
        rows.append([
            processes, f"{rate:.0f}", f"{rate / one:.2f}", f"{statistics.median(run.client_ms for run in runs):.1f}",
            f"{statistics.median(of_server):.1f}" if of_server else "not known here",
        ])  # fmt: skip
    report.table(
        "worker processes | jobs a second | against one | processor ms of a job, worker | the same, server", rows
    )
    trips = trips_of_a_job(server)
    print(
        f"A job is {trips:.1f} trips to the server, one after the other. So one connection can do no more than "
        "this, however fast the server is (computed):\n"
    )
    report.table(
        "trip, ms | jobs a second and connection",
        [[f"{ms:g}", f"{1000 / (trips * ms):.1f}"] for ms in ROUND_TRIPS_MS],
    )


# ---- idle


IDLE_MACHINES = 3
IDLE_SECONDS = 60.0
BACKENDS = """
    SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'memoryvault%' AND pid <> pg_backend_pid()
"""


def idle(report: Report, server: Cluster, seconds: float) -> None:
    """Workers without work: connections, transactions, processor time and memory of the server."""
    import psycopg

    from ..tasks.postgres.ledger import PostgresLedger

    conninfo = server.conninfo()
    with PostgresLedger(conninfo):
        pass  # Makes the tables.
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mv-shared-")))
        for number in range(IDLE_MACHINES):
            name = f"idle-{number}"
            made = machine(root, name, {"url": url_of(server, conninfo), "machine": name})
            stack.enter_context(made.process("service", "worker"))
        conn = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        until = time.monotonic() + 60.0
        while _one(conn, "SELECT count(*) FROM worker_state") < IDLE_MACHINES:
            _hurry(until)
        time.sleep(5.0)
        before, started = _load(conn), time.monotonic()
        time.sleep(seconds)
        after, passed = _load(conn), time.monotonic() - started
        pids = [row[0] for row in conn.execute(BACKENDS).fetchall()]
        memory = [size for pid in pids if (size := _own_bytes(pid)) is not None]
    per = IDLE_MACHINES * passed
    print(f"{IDLE_MACHINES} workers with nothing to do, for {passed:.0f} s:\n")
    report.table(
        "connections of a machine | transactions a second | processor ms of the server a second | MB of its memory",
        [[
            f"{len(pids) / IDLE_MACHINES:.1f}", f"{(after[0] - before[0]) / per:.2f}",
            f"{(after[1] - before[1]) / per * 1000:.2f}",
            f"{sum(memory) / IDLE_MACHINES / 1e6:.1f}" if memory else "not known here",
        ]],
    )  # fmt: skip


def _load(conn: Any) -> tuple[int, float]:
    """Transactions so far, and processor seconds of the connections' processes."""
    transactions = _one(conn, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
    pids = [row[0] for row in conn.execute(BACKENDS).fetchall()]
    return transactions, sum(map(processor_seconds, pids))


def _own_bytes(pid: int) -> int | None:
    """Memory that a process shares with nobody."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


# ---- the backfill


@dataclass
class Watched:
    """What was in the database while a backfill ran, at its fullest."""

    connections: int = 0
    contents: int = 0
    content_bytes: int = 0
    jobs: int = 0
    job_bytes: int = 0
    outcome_bytes: int = 0


@dataclass
class Backfill:
    """One run."""

    machines: int
    seconds: float
    megabytes: float
    sessions: int
    watched: Watched
    judged_elsewhere: int
    home_seconds: float
    """Processor time of the home machine's worker and its children."""
    other_seconds: float
    """The same of all others together, since the home machine's worker was started."""


WATCH = """
    SELECT (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'memoryvault%'),
           (SELECT count(*) FROM content), (SELECT coalesce(sum(octet_length(data)), 0) FROM content),
           (SELECT count(*) FROM job), (SELECT coalesce(sum(pg_column_size(job.*)), 0) FROM job),
           (SELECT coalesce(sum(octet_length(data)), 0) FROM outcome)
"""


@contextmanager
def watching(conninfo: str) -> Iterator[Watched]:
    """Looks ten times a second."""
    import psycopg

    seen, ended = Watched(), threading.Event()

    def look() -> None:
        with psycopg.connect(conninfo, autocommit=True) as conn:
            while not ended.wait(0.1):
                row = conn.execute(WATCH).fetchone()
                assert row is not None
                for name, value in zip(vars(seen), row, strict=True):
                    setattr(seen, name, max(getattr(seen, name), int(value)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def url_of(server: Cluster, conninfo: str) -> str:
    """The same as an address, for `queue.url`."""
    schema = conninfo.rsplit("search_path=", 1)[1].rstrip("'")
    options = quote(f"-c search_path={schema}", safe="")
    return (
        f"postgresql://owner@/postgres?host={quote(str(server.folder), safe='')}&port={server.port}&options={options}"
    )


def machine(root: Path, name: str, queue: dict[str, object]) -> Sandbox:
    """A machine with these settings of the section `queue`."""
    made = Sandbox(root / name)
    lines = [f"{key} = {json.dumps(value)}" for key, value in queue.items()]
    (made.root / "config.toml").write_text("\n".join(["[queue]", *lines, ""]), "utf-8")
    return made


def backfill(server: Cluster, sessions: Path, machines: int, root: Path) -> Backfill:
    """From the start of the home machine's worker, the others waiting, until its vault is settled."""
    import psycopg

    from ..tasks.postgres.ledger import PostgresLedger

    conninfo = server.conninfo()
    with PostgresLedger(conninfo):
        pass  # Makes the tables.
    url = url_of(server, conninfo) if machines > 1 else ""
    home = machine(root, "home", {"url": url, "share": "*", "work": False, "machine": "home"})
    plan = home.json("reflect", "corpus", "--root", str(sessions), "--execute")
    with ExitStack() as stack:
        watched = stack.enter_context(watching(conninfo))
        others = []
        for number in range(1, machines):
            other = machine(root, f"other-{number}", {"url": url, "machine": f"other-{number}"})
            others.append(stack.enter_context(other.process("service", "worker")).pid)
        until = time.monotonic() + BACKFILL_SECONDS
        with psycopg.connect(conninfo, autocommit=True) as conn:
            while _one(conn, "SELECT count(*) FROM worker_state") < machines - 1:
                _hurry(until)
            idle = sum(map(processor_seconds, others))
            started = time.monotonic()
            at_home = stack.enter_context(home.process("service", "worker")).pid
            while not _is_settled(home):
                _hurry(until)
            seconds = time.monotonic() - started
            home_seconds = processor_seconds(at_home)
            other_seconds = sum(map(processor_seconds, others)) - idle
            elsewhere = _one(conn, "SELECT count(*) FROM job WHERE kind = 'share.mine' AND state = 'done'")
    size, count = plan["bytes"] / 1e6, plan["to_process"]
    return Backfill(machines, seconds, size, count, watched, elsewhere, home_seconds, other_seconds)


def processor_seconds(pid: int) -> float:
    """Of the process and of its children that have ended; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _one(conn: Any, sql: str) -> int:
    return int(conn.execute(sql).fetchone()[0])


def _hurry(until: float) -> None:
    if time.monotonic() > until:
        raise SystemExit("the backfill did not end")
    time.sleep(0.1)


def _is_settled(home: Sandbox) -> bool:
    from ..tasks.queue.ledger import Ledger

    with Ledger(home.state / "queue.db", create=False) as ledger:
        counts = ledger.counts()
    left = sum(counts.get(kind, {}).get(state, 0) for kind in ("reflect.corpus", "corpus.settle")
               for state in ("queued", "running"))  # fmt: skip
    return not left and bool(counts.get("corpus.settle", {}).get("done"))


def backfills(report: Report, server: Cluster, data: Path, rounds: int) -> None:
    """The sessions of the archive, by 1, 2 and 4 machines in turns."""
    found: dict[int, list[Backfill]] = {machines: [] for machines in MACHINES}
    with tempfile.TemporaryDirectory(prefix="mv-shared-") as folder:
        root = Path(folder)
        with tarfile.open(data / "sessions.tar.gz") as archive:
            archive.extractall(root / "sessions", filter="data")
        for turn in range(rounds):
            for machines in MACHINES:
                found[machines].append(backfill(server, root / "sessions", machines, root / f"{turn}-{machines}"))
    one = found[1][0]
    print(
        f"{one.sessions} sessions, {one.megabytes:.0f} MB; from the start of the home machine's worker to its settled "
        f"vault; median of {rounds} runs in turns. All machines are processes on the same {os.cpu_count()} cores.\n"
    )
    alone = statistics.median(run.seconds for run in found[1])
    rows: list[list[object]] = []
    for machines, runs in found.items():
        seconds = statistics.median(run.seconds for run in runs)
        label = "1, nothing is shared" if machines == 1 else f"{machines}: home, {machines - 1} that only work"
        at_home = statistics.median(run.home_seconds for run in runs)
        elsewhere = statistics.median(run.other_seconds for run in runs)
        rows.append([label, f"{seconds:.1f}", f"{alone / seconds:.2f}", f"{at_home:.1f}", f"{elsewhere:.1f}",
                     runs[0].judged_elsewhere])  # fmt: skip
    report.table(
        "machines | seconds | against one | processor seconds at home | of the others | contents judged elsewhere", rows
    )
    rows = []
    for machines, runs in found.items():
        if machines == 1:
            continue
        seen = [run.watched for run in runs]
        fullest = Watched(*(max(getattr(each, name) for each in seen) for name in vars(Watched())))
        each = fullest.content_bytes / one.sessions
        rows.append([
            machines, fullest.contents, f"{fullest.content_bytes:,}", f"{each:,.0f}",
            f"{fullest.content_bytes / one.megabytes / 1e6:.2%}", fullest.jobs, f"{fullest.job_bytes:,}",
            f"{fullest.outcome_bytes:,}", fullest.connections, f"{fullest.connections / machines:.1f}",
        ])  # fmt: skip
    print("In the database at its fullest:\n")
    report.table(
        "machines | contents | their bytes | a session | of the transcripts | jobs | their bytes | bytes of outcomes | "
        "connections | for each machine",
        rows,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.shared", description=__doc__)
    parser.add_argument("tables", nargs="*", choices=("claims", "idle", "backfill", []), help="all, if none is named")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--claimer", nargs=2, metavar=("CONNINFO", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.claimer:
        return run_claimer(*options.claimer)
    if binaries() is None:
        print("bench.shared: PostgreSQL's server programs are not installed", file=sys.stderr)
        return 2
    tables = options.tables or ["claims", "idle", "backfill"]
    report = Report()
    with cluster("fsync=on", "max_connections=100") as server:
        if "claims" in tables:
            claims(report, server, options.jobs, options.rounds)
        if "idle" in tables:
            idle(report, server, IDLE_SECONDS)
        if "backfill" in tables:
            data = os.environ.get("MEMORYVAULT_DATA")
            if not data:
                print("The backfill is not made: MEMORYVAULT_DATA does not name the folder with sessions.tar.gz.\n")
            else:
                backfills(report, server, Path(data), options.rounds)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
