"""The rounds: each makes work, lets processes die in one way, and leaves the next to find what is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...runtime.errors import QueueUnavailable
from ...tasks.jobs.wiring import handlers
from ...tasks.queue.kinds import POLICIES
from .bed import LEASE_SECONDS, Bed

POINT_SECONDS = 8.0
"""How long a round waits for a process to reach its point: twice as long each time that it did not come there."""
MOST_POINT_SECONDS = 64.0

WORKER_POINTS = (
    "before-claim", "after-claim", "mid-child", "before-effect", "vault-before-rename", "after-effect",
    "before-commit", "before-completion", "reconciler", "schedule-tick", "spool-ingest", "create-tables",
    "queue-set-aside", "index-reconcile", "index-rebuild",
)  # fmt: skip
POINTS = (*WORKER_POINTS, "recall-drain")
DEADLY = ("KILL", "KILL", "KILL", "TERM", "INT")


def make_work(bed: Bed, *, sessions: int = 1) -> None:
    """Sessions by real hooks, and now and then a job of every kind that needs no argument."""
    for _ in range(sessions):
        bed.new_session()
    if len(bed.sessions) > 2 and bed.chance.random() < 0.4:
        bed.state_a_rule(bed.chance.choice(bed.sessions))
    # An enqueue that is refused was not accepted: nothing is owed for it.
    with suppress(QueueUnavailable):
        _enqueue_other_kinds(bed)


def _enqueue_other_kinds(bed: Bed) -> None:
    if not os.path.exists(bed.state.queue_db):
        return
    with bed.ledger() as ledger:
        known = {job.kind for job in ledger.list_jobs(most=1_000_000)}
        for kind in handlers(bed.settings):
            if not POLICIES[kind].required and (kind not in known or bed.chance.random() < 0.15):
                ledger.enqueue(kind, {"full": True} if kind == "index.reconcile" else {}, unique_key=f"chaos:{kind}")


def at_point(bed: Bed, point: str, signame: str = "KILL") -> None:
    """A process dies (or is stopped) where the program says `kill_point(point)`."""
    service = None
    _prepare(bed, point)
    armed = f"{point}@{bed.chance.choice((1, 1, 2, 3)) if point in _OFTEN else 1}={signame}"
    if point == "recall-drain":
        service = bed.service(armed)
        worker = bed.worker()
        _await_point(bed, service, point, signame)
        bed.kill(worker, signal.SIGKILL, "worker")
        bed.wait(worker, 5.0)
        return
    worker = bed.worker(armed)
    _await_point(bed, worker, point, signame)
    if bed.ended(worker) is None:
        bed.stop(worker)
    if service is not None:
        bed.stop(service)


_OFTEN = {"before-claim", "after-claim", "before-commit", "before-completion", "vault-before-rename"}


def _prepare(bed: Bed, point: str) -> None:
    match point:
        case "spool-ingest" if os.path.exists(bed.state.queue_db):
            with bed.locked_queue():
                make_work_by_hooks(bed)
        case "create-tables":
            delete_queue(bed)
            make_work_by_hooks(bed)
        case "queue-set-aside":
            make_work(bed)
            damage_queue(bed)
        case "schedule-tick":
            make_work(bed)
            with bed.ledger() as ledger, ledger.transaction() as conn:
                conn.execute("UPDATE schedule_state SET last_slot = last_slot - 7200")
        case "index-rebuild":
            make_work(bed)
            with bed.ledger() as ledger:
                ledger.enqueue("index.reconcile", {"full": True}, unique_key=f"rebuild:{len(bed.sessions)}")
        case "index-reconcile":
            make_work(bed)
            with bed.ledger() as ledger:
                ledger.enqueue("index.reconcile", {}, unique_key=f"walk:{len(bed.sessions)}")
        case _:
            make_work(bed)


def make_work_by_hooks(bed: Bed) -> None:
    """Only what needs no ledger."""
    bed.new_session()


def _await_point(bed: Bed, pid: int, point: str, signame: str) -> None:
    """Wait until the process has died of its point, or stands still at it, or something else of it died."""
    until = time.monotonic() + min(POINT_SECONDS * 2 ** bed.tally.missed[point], MOST_POINT_SECONDS)
    while time.monotonic() < until:
        status = bed.ended(pid)
        if status is not None:
            # Told to leave before it listens to signals it ends at once, as any program does.
            if status in {"KILL": (-9,), "TERM": (0, -15), "INT": (0, 1, -2)}.get(signame, ()):
                bed.tally.kills[f"{signame} at a point"] += 1
                bed.tally.points[point] += 1
            elif status != 0:
                bed.tally.unexpected.append(f"{point}: exit status {status}")
            return
        if point == "mid-child" and _child_died(bed):
            bed.tally.kills[f"{signame} at a point"] += 1
            bed.tally.points[point] += 1
            return
        time.sleep(0.02)
    bed.tally.missed[point] += 1


def _child_died(bed: Bed) -> bool:
    with bed.ledger() as ledger:
        return any("mining failed" in (job.error or "") for job in ledger.list_jobs(["queued"], kind="reflect.session"))


def at_random(bed: Bed) -> None:
    """The worker is killed at any time."""
    make_work(bed)
    worker = bed.worker()
    bed.wait(worker, bed.chance.uniform(0.02, 1.6))
    children = bed.children_of(worker)
    number = bed.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    bed.kill(worker, number, "worker")
    if bed.wait(worker, PATIENT if number != signal.SIGKILL else 5.0) is None:
        bed.tally.unexpected.append(f"the worker did not leave on {number.name}")
        bed.stop(worker)
    bed.count_orphans(children)


PATIENT = 20.0


def the_child(bed: Bed) -> None:
    """Only the child that mines is killed; the worker lives and tries again."""
    make_work(bed, sessions=2)
    worker = bed.worker()
    killed = 0
    until = time.monotonic() + 6.0
    while killed < 2 and time.monotonic() < until and bed.ended(worker) is None:
        for child in bed.children_of(worker):
            bed.kill(child, signal.SIGKILL, "child")
            killed += 1
        time.sleep(bed.chance.uniform(0.02, 0.2))
    bed.kill(worker, signal.SIGKILL, "worker")
    bed.wait(worker, 5.0)


def the_whole_family(bed: Bed) -> None:
    """The worker, its children and the recall service are killed at once."""
    make_work(bed)
    service, worker = bed.service(), bed.worker()
    bed.wait(worker, bed.chance.uniform(0.3, 1.5))
    for child in bed.children_of(worker):
        bed.kill(child, signal.SIGKILL, "child")
    bed.kill(worker, signal.SIGKILL, "worker")
    bed.kill(service, signal.SIGKILL, "service")
    bed.wait(worker, 5.0)
    bed.wait(service, 5.0)


def term_then_kill(bed: Bed) -> None:
    """Killed while it drains."""
    make_work(bed)
    worker = bed.worker()
    bed.wait(worker, bed.chance.uniform(0.2, 1.2))
    children = bed.children_of(worker)
    bed.kill(worker, signal.SIGTERM, "worker")
    bed.wait(worker, bed.chance.uniform(0.0, 0.3))
    bed.kill(worker, signal.SIGKILL, "worker")
    bed.wait(worker, 5.0)
    bed.count_orphans(children)


def zombie(bed: Bed) -> None:
    """A worker stands still for longer than its lease, another takes over; then the first comes back."""
    make_work(bed)
    point = bed.chance.choice(("after-claim", "before-effect", "after-effect", "before-completion", None))
    first = bed.worker(f"{point}=STOP" if point else None)
    stopped = time.monotonic() + (1.5 if point else bed.chance.uniform(0.2, 1.0))
    bed.wait(first, max(0.0, stopped - time.monotonic()))
    bed.kill(first, signal.SIGSTOP, "worker")
    if point:
        bed.tally.points[f"{point} (stopped)"] += 1
    time.sleep(LEASE_SECONDS + 0.5)
    second = bed.worker()
    bed.wait(second, LEASE_SECONDS + bed.chance.uniform(0.5, 2.0))
    if (status := bed.ended(first)) is not None:
        bed.tally.unexpected.append(f"a stopped worker ended with {status}")
    else:
        os.kill(first, signal.SIGCONT)
    # It finds out with its next look that it was replaced. If the second was refused, the first goes on.
    if bed.wait(first, 4.0) is None and bed.ended(second) is None:
        bed.tally.unexpected.append("two workers lived at once")
    for pid in (first, second):
        bed.kill(pid, signal.SIGKILL, "worker")
        bed.wait(pid, 5.0)


def two_at_once(bed: Bed) -> None:
    """Two workers start in the same moment: one works, one is refused."""
    make_work(bed)
    pair = [bed.worker(), bed.worker()]
    until = time.monotonic() + 8.0
    while time.monotonic() < until and all(_is_running(pid) for pid in pair):
        ended = [pid for pid in pair if bed.ended(pid) is not None]
        if ended:
            break
        time.sleep(0.02)
    else:
        bed.tally.unexpected.append("two workers lived at once")
    bed.wait(pair[0], bed.chance.uniform(0.0, 0.8))
    for pid in pair:
        if bed.ended(pid) is None:
            bed.kill(pid, signal.SIGKILL, "worker")
            bed.wait(pid, 5.0)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def the_service(bed: Bed) -> None:
    """The recall service is killed while the worker drains into it."""
    make_work(bed)
    worker, service = bed.worker(), bed.service()
    bed.wait(worker, bed.chance.uniform(0.5, 1.5))
    bed.kill(service, bed.chance.choice((signal.SIGKILL, signal.SIGTERM)), "service")
    bed.wait(service, 10.0)
    bed.kill(worker, signal.SIGKILL, "worker")
    bed.wait(worker, 5.0)


def deleted_while_down(bed: Bed) -> None:
    """queue.db is deleted while no worker runs: the markers bring the jobs back."""
    make_work(bed)
    delete_queue(bed)
    at_random(bed)


def damaged_while_down(bed: Bed) -> None:
    """queue.db is overwritten while no worker runs: it is set aside, and rebuilt."""
    make_work(bed)
    damage_queue(bed)
    at_random(bed)


def delete_queue(bed: Bed) -> None:
    """Delete the file and its log; what it counted is counted here."""
    with suppress(QueueUnavailable):
        if os.path.exists(bed.state.queue_db):
            bed.count_jobs()
    for ending in ("", "-wal", "-shm"):
        path = bed.state.queue_db + ending
        if os.path.exists(path):
            os.unlink(path)


def damage_queue(bed: Bed) -> None:
    """Overwrite a page or two of the file, or its head."""
    if not os.path.exists(bed.state.queue_db):
        return
    with open(bed.state.queue_db, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        where = bed.chance.choice((0, 4096 * bed.chance.randrange(1, max(2, size // 4096))))
        file.seek(where)
        file.write(os.urandom(8192))


Round = Callable[[Bed], None]
WEIGHTED: Sequence[tuple[int, Round]] = (
    (6, at_random),
    (2, the_child),
    (2, the_whole_family),
    (2, term_then_kill),
    (1, zombie),
    (1, two_at_once),
    (2, the_service),
    (1, deleted_while_down),
    (1, damaged_while_down),
)


def plan(bed: Bed, number: int) -> None:
    """Round `number`: first every named point, then every way to die, then at random."""
    if number < len(POINTS):
        at_point(bed, POINTS[number])
        return
    number -= len(POINTS)
    if number < len(WEIGHTED):
        WEIGHTED[number][1](bed)
    elif bed.chance.random() < 0.5:
        at_point(bed, bed.chance.choice(POINTS), bed.chance.choice(DEADLY))
    else:
        weights = [weight for weight, _ in WEIGHTED]
        bed.chance.choices([round_ for _, round_ in WEIGHTED], weights)[0](bed)
