"""Slots are enqueued once, with several workers and a changing clock."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryvault.runtime.errors import UsageError
from memoryvault.schedules.table import Schedule
from memoryvault.tasks.queue.ledger import Ledger
from memoryvault.tasks.queue.scheduler import Scheduler, local_timezone
from memoryvault.tests.tasks.support import POLICIES

SWEEP = Schedule("sweep", "*/5 * * * *", "effect", first="now")
WEEKLY = Schedule("weekly", "0 3 * * 0", "single")
OTHER = Schedule("other", "* * * * *", "unhandled")


class Clock:
    """A clock to be set; starts on a Wednesday."""

    def __init__(self) -> None:
        self.time = datetime(2027, 3, 10, 12, 1, tzinfo=UTC)

    def __call__(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "queue.db", policies=POLICIES, clock=clock) as ledger:
        yield ledger


def scheduler(ledger: Ledger, *schedules: Schedule) -> Scheduler:
    """As a worker makes one after a restart."""
    return Scheduler(ledger, kinds=POLICIES, tz=UTC, schedules=schedules)


def run_all(ledger: Ledger) -> None:
    """Run every job that is due, so that no later slot is skipped for it."""
    while (taken := ledger.take(lambda: "a", 30)) is not None:
        ledger.complete(taken)


def keys(ledger: Ledger) -> list[str | None]:
    """The slots enqueued, oldest first."""
    return [job.unique_key for job in reversed(ledger.list_jobs())]


def test_a_slot_is_enqueued_once_over_restarts_and_by_two_workers(ledger: Ledger, clock: Clock) -> None:
    assert scheduler(ledger, SWEEP, OTHER).tick() == 1
    assert scheduler(ledger, SWEEP, OTHER).tick() == 0
    with Ledger(ledger.path, policies=POLICIES, clock=clock) as second:
        assert scheduler(second, SWEEP).tick() == 0
    run_all(ledger)
    clock.time += timedelta(minutes=4)
    assert scheduler(ledger, SWEEP).tick() == 1
    assert keys(ledger) == ["sweep:2027-03-10T12:00Z", "sweep:2027-03-10T12:05Z"]
    assert ledger.list_jobs()[0].args == {"slot": "sweep:2027-03-10T12:05Z"}


def test_asleep_over_sunday_three_it_runs_once_on_waking(ledger: Ledger, clock: Clock) -> None:
    assert scheduler(ledger, WEEKLY).tick() == 0
    clock.time = datetime(2027, 3, 23, 9, 0, tzinfo=UTC)
    assert scheduler(ledger, WEEKLY).tick() == 1
    assert scheduler(ledger, WEEKLY).tick() == 0
    assert keys(ledger) == ["weekly:2027-03-21T03:00Z"]
    assert ledger.backlog().due == 1


def test_a_clock_set_back_repeats_no_slot(ledger: Ledger, clock: Clock) -> None:
    scheduler(ledger, SWEEP, WEEKLY).tick()
    run_all(ledger)
    clock.time = datetime(2027, 3, 14, 3, 1, tzinfo=UTC)
    scheduler(ledger, SWEEP, WEEKLY).tick()
    done = keys(ledger)
    clock.time -= timedelta(minutes=30)
    assert scheduler(ledger, SWEEP, WEEKLY).tick() == 0
    clock.time = datetime(2027, 3, 14, 3, 2, tzinfo=UTC)
    assert scheduler(ledger, SWEEP, WEEKLY).tick() == 0
    assert keys(ledger) == done


def test_after_a_clock_set_back_a_day_sweeps_go_on(ledger: Ledger, clock: Clock) -> None:
    scheduler(ledger, SWEEP).tick()
    clock.time -= timedelta(days=1)
    assert scheduler(ledger, SWEEP).tick() == 0
    ledger.follow_clock()
    run_all(ledger)
    clock.time += timedelta(minutes=5)
    assert scheduler(ledger, SWEEP).tick() == 1


def test_a_slot_is_skipped_while_the_job_of_an_earlier_one_has_not_ended(ledger: Ledger, clock: Clock) -> None:
    scheduler(ledger, SWEEP).tick()
    clock.time += timedelta(minutes=5)
    assert scheduler(ledger, SWEEP).tick() == 0
    taken = ledger.take(lambda: "a", 30)
    assert taken is not None
    clock.time += timedelta(minutes=5)
    assert scheduler(ledger, SWEEP).tick() == 0
    ledger.complete(taken)
    clock.time += timedelta(minutes=5)
    assert scheduler(ledger, SWEEP).tick() == 1


def test_a_schedule_of_a_paused_kind_rests_until_it_is_resumed(ledger: Ledger, clock: Clock) -> None:
    parts = scheduler(ledger, SWEEP)
    ledger.pause(SWEEP.kind)
    for _ in range(3):
        parts.tick()
        clock.time += timedelta(hours=1)
        assert ledger.take(lambda: "a", 30) is None
    (status,) = parts.status()
    assert status.paused
    ledger.resume(SWEEP.kind)
    assert ledger.take(lambda: "a", 30) is not None
    assert ledger.take(lambda: "a", 30) is None, "of the slots that passed one runs"
    assert ledger.get(parts.run_now("sweep")).unique_key == "sweep:by-hand"
    with pytest.raises(UsageError, match="there are: sweep"):
        parts.run_now("none")


def test_schedule_that_has_not_run_has_no_last_time(ledger: Ledger, clock: Clock) -> None:
    """Neither the slot before the installation counts, nor one that waits or was passed over."""
    begun = clock.time
    parts = scheduler(ledger, SWEEP, Schedule("daily", "0 4 * * *", "effect"))
    parts.tick()
    assert [status.last_run for status in parts.status()] == [None, None]
    taken = ledger.take(lambda: "a", 30)
    assert taken is not None
    assert [status.last_run for status in parts.status()] == [begun, None]
    ledger.complete(taken)
    clock.time += timedelta(minutes=5)
    parts.tick()
    assert [status.last_run for status in parts.status()] == [begun, None], "the next one waits"
    parts.run_now("daily")
    while ledger.take(lambda: "a", 30) is not None:
        pass
    assert [status.last_run for status in parts.status()] == [clock.time, clock.time]


def test_a_workers_slots_follow_the_time_zone(ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    daily = Schedule("daily", "0 4 * * *", "effect")
    parts = Scheduler(ledger, kinds=POLICIES, schedules=(daily,))
    try:
        monkeypatch.setenv("TZ", "Europe/Berlin")
        parts.tick()
        (before,) = parts.status()
        assert before.next_slot == datetime(2027, 3, 11, 3, tzinfo=UTC)
        monkeypatch.setenv("TZ", "America/New_York")
        (after,) = parts.status()
        assert after.next_slot == datetime(2027, 3, 11, 9, tzinfo=UTC)
        passed = ["daily:2027-03-10T09:00Z"]  # Four o'clock there came after that in Berlin: it is taken once more.
        for hour, slots in ((3, passed), (9, [*passed, "daily:2027-03-11T09:00Z"])):
            clock.time = datetime(2027, 3, 11, hour, 1, tzinfo=UTC)
            parts.tick()
            assert keys(ledger) == slots
            if (taken := ledger.take(lambda: "a", 30)) is not None:
                ledger.complete(taken)
        assert time.localtime(clock()).tm_hour == 4, "and so do the days of notes"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_time_zone_is_that_of_the_c_library() -> None:
    """TZ comes before the machine's zone, also where it has rules."""
    july = datetime(2027, 7, 1, tzinfo=UTC)
    berlin, tokyo = "/usr/share/zoneinfo/Europe/Berlin", "/usr/share/zoneinfo/Asia/Tokyo"

    def hours(environ: dict[str, str], machine: str) -> float:
        offset = july.astimezone(local_timezone(environ, machine)).utcoffset()
        assert offset is not None
        return offset.total_seconds() / 3600

    assert hours({"TZ": "Asia/Tokyo"}, "/nowhere") == hours({"TZ": ":Asia/Tokyo"}, berlin) == 9
    assert hours({}, berlin) == 2
    for other in ("", "UTC0", "No/Where", "/no/file"):
        assert hours({"TZ": other}, tokyo) != 9, "not the machine's: that is not in force"
