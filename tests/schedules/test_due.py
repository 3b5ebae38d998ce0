"""Which slots are due: catch-up, changes of the clocks, clocks that jump."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.schedules.due import (
    MAX_CATCH_UP_SLOTS,
    decide,
    from_wall_clock,
    jitter,
    next_slot,
    previous_slot,
    slot_key,
)
from memoryvault.schedules.table import SCHEDULES, CatchUp, Schedule

BERLIN = ZoneInfo("Europe/Berlin")
DAILY = Schedule("daily", "30 2 * * *", "k")
SWEEP = Schedule("sweep", "*/5 * * * *", "k")


def berlin(*fields: int, fold: int = 0) -> datetime:
    """A moment by Berlin's wall clock, in UTC."""
    return datetime(*fields, tzinfo=BERLIN, fold=fold).astimezone(UTC)  # type: ignore[arg-type, misc]


def due_slots(schedule: Schedule, last_slot: datetime | None, now: datetime, tz: tzinfo) -> list[datetime]:
    """The slots to enqueue at `now`, oldest first."""
    return list(decide(schedule, last_slot, now, tz).slots)


@pytest.mark.parametrize(("policy", "count"), [("skip", 0), ("latest", 1), ("all", 3)])
def test_slots_missed_in_sleep_are_caught_up_by_policy(policy: CatchUp, count: int) -> None:
    schedule = replace(DAILY, catch_up=policy)
    slots = due_slots(schedule, berlin(2027, 1, 4, 2, 30), berlin(2027, 1, 7, 9, 0), BERLIN)
    expected = [berlin(2027, 1, day, 2, 30) for day in (5, 6, 7)]
    assert slots == (expected[-count:] if count else [])


@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
def test_a_slot_that_comes_while_the_worker_runs_is_due(policy: CatchUp) -> None:
    schedule, slot = replace(DAILY, catch_up=policy), berlin(2027, 1, 5, 2, 30)
    before = berlin(2027, 1, 4, 2, 30)
    assert due_slots(schedule, before, slot - timedelta(seconds=1), BERLIN) == []
    assert due_slots(schedule, before, slot, BERLIN) == [slot]
    assert due_slots(schedule, before, slot + timedelta(seconds=5), BERLIN) == [slot]
    assert due_slots(schedule, slot, slot + timedelta(seconds=5), BERLIN) == []


def test_a_fresh_installation_starts_sweeps_and_waits_with_the_rest() -> None:
    now = berlin(2027, 1, 5, 12, 3)
    assert due_slots(replace(SWEEP, first="now"), None, now, BERLIN) == [berlin(2027, 1, 5, 12, 0)]
    assert due_slots(DAILY, None, now, BERLIN) == []
    assert decide(DAILY, None, now, BERLIN).last_slot == berlin(2027, 1, 5, 2, 30)


def test_in_spring_a_time_that_does_not_exist_becomes_the_end_of_the_gap() -> None:
    slots = due_slots(replace(DAILY, catch_up="all"), berlin(2027, 3, 27, 2, 30), berlin(2027, 3, 29, 12, 0), BERLIN)
    assert [slot.astimezone(BERLIN).strftime("%d %H:%M") for slot in slots] == ["28 03:00", "29 02:30"]


def test_in_autumn_a_time_that_exists_twice_is_taken_once() -> None:
    last = berlin(2027, 10, 30, 2, 30)
    first, second = berlin(2027, 10, 31, 2, 30), berlin(2027, 10, 31, 2, 30, fold=1)
    assert due_slots(DAILY, last, first, BERLIN) == [first]
    assert due_slots(DAILY, first, second, BERLIN) == []
    assert next_slot(DAILY, first, BERLIN) == berlin(2027, 11, 1, 2, 30)


def test_sweeps_do_not_rest_in_the_doubled_hour() -> None:
    start = berlin(2027, 10, 31, 1, 0)
    slots = due_slots(replace(SWEEP, catch_up="all"), start, start + timedelta(hours=4), BERLIN)
    assert len(slots) == 4 * 12
    assert len({slot_key(SWEEP, slot) for slot in slots}) == 4 * 12


def test_a_clock_set_back_repeats_nothing() -> None:
    done = berlin(2027, 1, 5, 2, 30)
    for back in (timedelta(minutes=1), timedelta(days=1), timedelta(days=2)):
        assert due_slots(DAILY, done, done - back, BERLIN) == []
        assert decide(DAILY, done, done - back, BERLIN).last_slot == done


def test_a_sweep_goes_on_after_a_clock_set_back_a_day() -> None:
    done = berlin(2027, 1, 5, 12, 0)
    aligned = decide(SWEEP, done, done - timedelta(days=1, minutes=-2), BERLIN)
    assert aligned.slots == ()
    assert aligned.last_slot == done - timedelta(days=1)


def test_after_a_boot_with_a_date_far_ahead_nothing_waits_for_that_date() -> None:
    done = berlin(2030, 1, 5, 2, 30)
    now = berlin(2027, 1, 5, 12, 0)
    aligned = decide(DAILY, done, now, BERLIN)
    assert aligned.slots == (), "what was done last is not done again"
    assert aligned.last_slot == berlin(2027, 1, 5, 2, 30)
    assert due_slots(DAILY, aligned.last_slot, now + timedelta(days=1), BERLIN) == [berlin(2027, 1, 6, 2, 30)]
    weekly = replace(DAILY, cron="30 2 * * 0")
    for days, starts_anew in ((7, False), (9, True)):
        assert (decide(weekly, now + timedelta(days=days), now, BERLIN).last_slot < now) is starts_anew


def test_a_clock_set_forward_years_catches_up_within_bounds() -> None:
    last = berlin(2027, 1, 5, 12, 0)
    slots = due_slots(replace(SWEEP, catch_up="all"), last, last + timedelta(days=3650), BERLIN)
    assert len(slots) == MAX_CATCH_UP_SLOTS
    assert slots[-1] == last + timedelta(days=3650)


def test_jitter_is_bounded_and_the_same_for_a_slot_on_a_machine() -> None:
    schedule = replace(DAILY, jitter_seconds=300)
    slots = [berlin(2027, 1, day, 2, 30) for day in range(1, 29)]
    delays = [jitter(schedule, slot, "a") for slot in slots]
    assert delays == [jitter(schedule, slot, "a") for slot in slots]
    assert 0 <= min(delays) < max(delays) < 300
    assert jitter(schedule, slots[0], "b") != delays[0]
    assert jitter(DAILY, slots[0], "a") == 0


def test_a_wall_clock_time_in_a_gap_of_half_an_hour() -> None:
    lord_howe = ZoneInfo("Australia/Lord_Howe")
    instant = from_wall_clock(datetime(2027, 10, 3, 2, 10), lord_howe)  # noqa: DTZ001
    assert instant.astimezone(lord_howe).strftime("%H:%M:%S") == "02:30:00"


@given(
    st.sampled_from(SCHEDULES),
    st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001
    st.sampled_from(["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "UTC"]),
)
def test_slots_around_any_moment_are_in_order(schedule: Schedule, moment: datetime, zone: str) -> None:
    tz, now = ZoneInfo(zone), moment.replace(tzinfo=UTC)
    before, after = previous_slot(schedule, now, tz), next_slot(schedule, now, tz)
    assert before <= now < after
    assert previous_slot(schedule, after, tz) == after
    assert previous_slot(schedule, after - timedelta(seconds=1), tz) == before
    assert len({schedule.name for schedule in SCHEDULES}) == len(SCHEDULES)
