"""Measure the speed of the queue: `python -m memoryvault.bench.queue`; exit status 1 if a goal is missed.

Everything runs on real files below the temporary folder (`--folder` names another one), with real processes where they
matter. Compared runs take turns, so that a slow moment of the machine affects both.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from huey import SqliteHuey
from huey.consumer import Consumer

from ..runtime.layout import StatePaths
from ..runtime.process_lock import lock_holder
from ..tasks.queue.job import RunningJob
from ..tasks.queue.kinds import Json, KindPolicy
from ..tasks.queue.ledger import Ledger
from ..tasks.queue.records import NewJob
from ..tasks.queue.wakeup import wake_worker
from ..tasks.queue.worker import Worker, WorkerContext

ENQUEUE_P99_LIMIT_MS = 100.0
START_MEDIAN_LIMIT_MS = 10.0
RATE_RATIO_LIMIT = 0.7
RECOVERY_LIMIT_SECONDS = 5.0
SLOWDOWN_LIMIT = 0.10
PRODUCERS = 8
THREADS = 2


def _policy(kind: str, concurrency: int, required: Mapping[str, Any] | None = None) -> KindPolicy:
    return KindPolicy(kind, 60.0, 5, 0.1, 1.0, concurrency, required=required or {})


POLICIES = {
    "noop": _policy("noop", 64),
    "slow": _policy("slow", 64),
    "reflect.session": _policy("reflect.session", 64, {"session": "session"}),
}


def _noop(job: RunningJob) -> None:
    return None


def _when(job: RunningJob) -> Mapping[str, Json]:
    return {"at": time.monotonic()}


def _slow(job: RunningJob) -> None:
    if job.attempt == 1:
        job.lost.wait(60.0)


HANDLERS = {"noop": _when, "slow": _slow, "reflect.session": _noop}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


@dataclass
class Report:
    """Prints markdown tables, and counts the missed goals."""

    missed: int = 0

    def table(self, header: str, rows: Sequence[Sequence[object]]) -> None:
        """Print one table."""
        print(f"| {header} |\n|{'---|' * (header.count('|') + 1)}")
        for row in rows:
            print("| " + " | ".join(str(cell) for cell in row) + " |")
        print(flush=True)

    def bar(self, met: bool) -> str:
        """Return the cell for a goal."""
        self.missed += not met
        return "yes" if met else "**no**"


# ---- processes


@contextmanager
def worker_process(state: StatePaths) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker for the test kinds in another process."""
    process = _start("--worker", state.root)
    try:
        while lock_holder(state.worker_lock) is None or not os.path.exists(state.wake_socket):
            if process.poll() is not None:
                raise SystemExit("the worker did not start")
            time.sleep(0.005)
        yield process
    finally:
        process.terminate()
        process.wait()


def _start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "memoryvault.bench.queue", *arguments],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if arguments[0] == "--producer" else subprocess.DEVNULL,
    )


def run_worker(folder: str) -> int:
    """Run a worker: `--worker FOLDER`."""
    return Worker(_context(StatePaths(folder)), HANDLERS).run_forever()


def _context(state: StatePaths) -> WorkerContext:
    return WorkerContext(state, workers=THREADS, policies=POLICIES, schedules=())


def run_producer(folder: str, name: str, count: int) -> int:
    """Print the milliseconds of each enqueue as JSON: `--producer FOLDER NAME COUNT`."""
    state, times = StatePaths(folder), list[float]()
    ledger = Ledger(state.queue_db, policies=POLICIES, wakeup=lambda: wake_worker(state.wake_socket))
    for number in range(count):
        time.sleep(random.uniform(0.0, 0.01))
        started = time.perf_counter()
        ledger.enqueue("noop", unique_key=f"{name}:{number}")
        times.append((time.perf_counter() - started) * 1000)
    print(json.dumps({"ms": times}))
    return 0


# ---- the tables


def syncing(report: Report, root: Path, count: int) -> None:
    """Measure a sync of one page, the least duration of a durable enqueue."""
    times = []
    with (root / "page").open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * 4096)
            started = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - started) * 1000)
    print("The disk alone: one page written and synced, by one process.\n")
    report.table(
        "syncs | median ms | p99 ms | max ms",
        [[count, f"{statistics.median(times):.1f}", f"{percentile(times, 0.99):.1f}", f"{max(times):.1f}"]],
    )


def enqueueing(report: Report, root: Path, count: int) -> None:
    """Measure eight processes that enqueue at once while a worker runs."""
    state = _state(root / "enqueue")
    with Ledger(state.queue_db, policies=POLICIES):
        pass
    with worker_process(state):
        producers = [_start("--producer", state.root, f"p{n}", str(count)) for n in range(PRODUCERS)]
        answers = [producer.communicate()[0] for producer in producers]
        errors = sum(producer.returncode != 0 for producer in producers)
        _until_idle(state)
    times = [ms for answer in answers if answer for ms in json.loads(answer)["ms"]]
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        done = len(ledger.list_jobs(["done"], most=1_000_000))
    p99 = percentile(times, 0.99)
    met = p99 <= ENQUEUE_P99_LIMIT_MS and not errors and done == PRODUCERS * count
    print(f"{PRODUCERS} processes enqueue at once at synchronous=FULL, a worker runs. Bar: p99 ≤ 100 ms, no error.\n")
    report.table(
        "enqueued | median ms | p99 ms | max ms | errors | done | bar",
        [[len(times), f"{statistics.median(times):.1f}", f"{p99:.1f}", f"{max(times):.1f}", errors, done,
          report.bar(met)]],
    )  # fmt: skip


def starting(report: Report, root: Path, count: int) -> None:
    """Measure from the call of enqueue to the first line of the handler, in another process."""
    state = _state(root / "start")
    times = []
    with (
        Ledger(state.queue_db, policies=POLICIES, wakeup=lambda: wake_worker(state.wake_socket)) as ledger,
        worker_process(state),
    ):
        for _ in range(count):
            before = time.monotonic()
            job_id = ledger.enqueue("noop")
            while (job := ledger.get(job_id)).state != "done":
                time.sleep(0.002)
            times.append((job.history[-1]["result"]["at"] - before) * 1000)
            time.sleep(0.005)
    median = statistics.median(times)
    print("From `enqueue` (its sync to disk included) to the handler's first line in an idle worker.\n")
    report.table(
        "jobs | median ms | p95 ms | max ms | bar: median ≤ 10 ms",
        [[count, f"{median:.1f}", f"{percentile(times, 0.95):.1f}", f"{max(times):.1f}",
          report.bar(median <= START_MEDIAN_LIMIT_MS)]],
    )  # fmt: skip


def rates(report: Report, root: Path, count: int, rounds: int) -> None:
    """Compare the rate of no-op jobs with plain huey, in turns."""
    ours: list[float] = []
    plain: dict[str, list[float]] = {"default": [], "fsync=False": []}
    for number in range(rounds):
        ours.append(_our_rate(_state(root / f"rate-{number}"), count))
        for way, found in plain.items():
            found.append(_plain_rate(root / f"plain-{way}-{number}.db", count, None if way == "default" else False))
    mine, theirs = statistics.median(ours), {way: statistics.median(found) for way, found in plain.items()}
    met = mine >= RATE_RATIO_LIMIT * theirs["default"]
    rows: list[list[object]] = [
        ["this queue: leased, fenced, recorded; synchronous=NORMAL while it runs", f"{mine:.0f}", "", ""],
        ["plain huey as it comes: SqliteHuey, synchronous=FULL", f"{theirs['default']:.0f}",
         f"{mine / theirs['default']:.2f}", report.bar(met)],
        ["plain huey with fsync=False: nothing is synced at all", f"{theirs['fsync=False']:.0f}",
         f"{mine / theirs['fsync=False']:.2f}", "no bar"],
    ]  # fmt: skip
    print(f"{count} no-op jobs, {THREADS} threads, median of {rounds} runs in turns. Bar: 0.7 of plain huey's rate.\n")
    report.table("queue | jobs a second | we : it | bar", rows)
    _profile(report, _state(root / "profile"), min(count, 5000))


def _our_rate(state: StatePaths, count: int) -> float:
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        ledger.enqueue_all(NewJob("noop", {}) for _ in range(count))
    worker = Worker(_context(state), {"noop": _noop})
    gc.collect()
    started = time.perf_counter()
    done = worker.run_until_idle(600.0)
    seconds = time.perf_counter() - started
    if done.done != count:
        raise SystemExit(f"{done.done} of {count} jobs were done")
    return count / seconds


def _plain_rate(path: Path, count: int, fsync: bool | None) -> float:
    huey = SqliteHuey("plain", filename=str(path), results=False, fsync=fsync)
    left, lock, ended = count, threading.Lock(), threading.Event()

    def noop() -> None:
        nonlocal left
        with lock:
            left -= 1
            if not left:
                ended.set()

    task = huey.task(name="noop")(noop)
    messages = [(huey.serialize_task(task.s()),) for _ in range(count)]
    with huey.storage.db(commit=True) as cursor:  # All at once: only the running is measured.
        cursor.executemany("insert into task (queue, data) values ('plain', ?)", messages)

    class Quiet(Consumer):  # type: ignore[misc]
        def _set_signal_handlers(self) -> None:
            pass

    consumer = Quiet(huey, workers=THREADS, periodic=False, initial_delay=0.01, check_worker_health=False)
    gc.collect()
    started = time.perf_counter()
    consumer.start()
    if not ended.wait(600.0):
        raise SystemExit("plain huey did not end")
    seconds = time.perf_counter() - started
    consumer.stop(graceful=True)
    huey.storage.close()
    return count / seconds


class _Timed:
    """A connection that adds up the time of each statement."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self.seconds: dict[str, float] = {}

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        started = time.perf_counter()
        try:
            return self._conn.execute(sql, *parameters)
        finally:
            name = " ".join(sql.split())[:48]
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conn, name)


def _profile(report: Report, state: StatePaths, count: int) -> None:
    """Measure the time of a job in the ledger's statements, in one thread."""
    numbers = itertools.count()
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        ledger.enqueue_all(NewJob("noop", {}) for _ in range(count))
        timed = _Timed(ledger._conn)
        ledger._conn = timed  # type: ignore[assignment]
        taken = ledger.take(lambda: f"1:nonce-{next(numbers)}", 30.0)
        started = time.process_time()
        while taken is not None:
            with ledger.transaction():
                ledger.complete(taken)
                taken = ledger.take(lambda: f"1:nonce-{next(numbers)}", 30.0)
        total = time.process_time() - started
    rows: list[list[object]] = [
        [f"`{sql}`", f"{seconds / count * 1e6:.1f}"]
        for sql, seconds in sorted(timed.seconds.items(), key=lambda item: -item[1])[:7]
    ]
    rows.append(["everything of the ledger, Python included", f"{total / count * 1e6:.1f}"])
    print("What a job costs in the ledger, one thread: its end and the next claim are one transaction.\n")
    report.table("part | microseconds a job", rows)


def recovering(report: Report, root: Path, rounds: int) -> None:
    """Kill a worker in mid-job, and measure from the start of the next one to the job's end."""
    times = []
    for number in range(rounds):
        state = _state(root / f"recover-{number}")
        wake = partial(wake_worker, state.wake_socket)
        with Ledger(state.queue_db, policies=POLICIES, wakeup=wake) as ledger:
            job_id = ledger.enqueue("slow")
            with worker_process(state) as process:
                while ledger.get(job_id).state != "running":
                    time.sleep(0.005)
                process.send_signal(signal.SIGKILL)
                process.wait()
            started = time.monotonic()
            with worker_process(state):
                while ledger.get(job_id).state != "done":
                    time.sleep(0.005)
                times.append(time.monotonic() - started)
    print("A worker is killed (SIGKILL) in mid-job: from the start of the next process to the job's end.\n")
    report.table(
        "kills | median s | max s | bar: ≤ 5 s",
        [[rounds, f"{statistics.median(times):.2f}", f"{max(times):.2f}",
          report.bar(max(times) <= RECOVERY_LIMIT_SECONDS)]],
    )  # fmt: skip


def with_history(report: Report, root: Path, finished: int, claims: int) -> None:
    """Claims from an empty ledger and from one full of finished jobs, in turns."""
    empty, full = _state(root / "empty"), _state(root / "full")
    with Ledger(empty.queue_db, policies=POLICIES) as few, Ledger(full.queue_db, policies=POLICIES) as many:
        entry = json.dumps([{"attempt": 1, "owner": "1:nonce-1", "started": 1.0, "ended": 2.0,
                             "outcome": "done", "error": None, "result": {"saved": 1}}])  # fmt: skip
        with many.transaction() as conn:
            conn.execute(
                """INSERT INTO job (kind, args, unique_key, state, attempt, run_at, created_at, started_at,
                                    finished_at, history)
                   WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :finished)
                   SELECT 'noop', '{}', 'key:' || i, 'done', 1, 1.0, 1.0, 1.0, 2.0, :entry FROM n""",
                {"finished": finished, "entry": entry},
            )
        many._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        times: dict[str, list[float]] = {"few": [], "many": []}
        for _ in range(claims):
            for name, ledger in (("few", few), ("many", many)):
                ledger.enqueue_all([NewJob("noop", {})])
                started = time.perf_counter()
                taken = ledger.take(lambda: "1:nonce", 30.0)
                times[name].append(time.perf_counter() - started)
                assert taken is not None
                ledger.complete(taken)
    before, after = (statistics.median(times[name]) * 1e6 for name in ("few", "many"))
    size = os.path.getsize(full.queue_db) // 2**20
    print(f"A claim with {finished} finished jobs in the file ({size} MB), and without.\n")
    report.table(
        "finished jobs | claims | median µs | slower by | bar: < 10 %",
        [[0, claims, f"{before:.0f}", "", ""],
         [finished, claims, f"{after:.0f}", f"{(after / before - 1) * 100:+.1f} %",
          report.bar(after / before - 1 < SLOWDOWN_LIMIT)]],
    )  # fmt: skip


def _state(folder: Path) -> StatePaths:
    state = StatePaths(folder)
    state.ensure()
    return state


def _until_idle(state: StatePaths) -> None:
    with Ledger(state.queue_db, policies=POLICIES) as ledger:
        while ledger.is_busy() or os.listdir(state.spool):
            time.sleep(0.02)


def main(argv: list[str]) -> int:
    """All tables; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m memoryvault.bench.queue", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, to see that it works")
    parser.add_argument("--folder", type=Path, help="where to work (default: the temporary folder)")
    options = parser.parse_args(argv)
    share = 10 if options.quick else 1
    report = Report()
    tables: tuple[Callable[[Path], None], ...] = (
        lambda root: syncing(report, root, 200 // share),
        lambda root: enqueueing(report, root, 200 // share),
        lambda root: starting(report, root, 200 // share),
        lambda root: rates(report, root, 20_000 // share, 3),
        lambda root: recovering(report, root, 10 // share + 1),
        lambda root: with_history(report, root, 1_000_000 // share, 2000 // share),
    )
    for table in tables:
        with tempfile.TemporaryDirectory(prefix="memoryvault-bench-", dir=options.folder) as folder:
            table(Path(folder))
    return 1 if report.missed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        sys.exit(run_worker(sys.argv[2]))
    if sys.argv[1:2] == ["--producer"]:
        sys.exit(run_producer(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    sys.exit(main(sys.argv[1:]))
