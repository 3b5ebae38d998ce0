"""Which slot is due: after sleep, at daylight saving changes, and after jumps of the clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memoryvault.schedules.due import decide, next_slot, previous_slot, slot_key
from memoryvault.schedules.table import SCHEDULES, Schedule

BERLIN = ZoneInfo("Europe/Berlin")
DAILY = Schedule("daily", "30 2 * * *", "k")
SWEEP = Schedule("sweep", "*/5 * * * *", "k")


def berlin(*fields: int, fold: int = 0) -> datetime:
    """A moment by Berlin's wall clock, in UTC."""
    return datetime(*fields, tzinfo=BERLIN, fold=fold).astimezone(UTC)  # type: ignore[arg-type, misc]


def due_slot(schedule: Schedule, last_slot: datetime | None, now: datetime, tz: tzinfo = BERLIN) -> datetime | None:
    """The slot to enqueue at `now`."""
    return decide(schedule, last_slot, now, tz).slot


def test_a_fresh_installation_starts_sweeps_and_waits_with_the_rest() -> None:
    now = berlin(2027, 1, 5, 12, 3)
    assert due_slot(replace(SWEEP, first="now"), None, now) == berlin(2027, 1, 5, 12, 0)
    assert due_slot(DAILY, None, now) is None
    assert decide(DAILY, None, now, BERLIN).last_slot == berlin(2027, 1, 5, 2, 30)


def test_in_spring_a_time_that_does_not_exist_comes_an_hour_later() -> None:
    slot = due_slot(DAILY, berlin(2027, 3, 27, 2, 30), berlin(2027, 3, 28, 12, 0))
    assert slot == berlin(2027, 3, 28, 3, 30)
    assert next_slot(DAILY, berlin(2027, 3, 28, 12, 0), BERLIN) == berlin(2027, 3, 29, 2, 30)


def test_in_autumn_a_time_that_exists_twice_is_taken_once() -> None:
    last = berlin(2027, 10, 30, 2, 30)
    first, second = berlin(2027, 10, 31, 2, 30), berlin(2027, 10, 31, 2, 30, fold=1)
    assert due_slot(DAILY, last, first) == first
    assert due_slot(DAILY, first, second) is None
    assert next_slot(DAILY, first, BERLIN) == berlin(2027, 11, 1, 2, 30)


def test_sweeps_do_not_rest_in_the_doubled_hour() -> None:
    last, slots = berlin(2027, 10, 31, 1, 0), set()
    for _ in range(4 * 12):
        last = decide(SWEEP, last, last + timedelta(minutes=5), BERLIN).last_slot
        slots.add(slot_key(SWEEP, last))
    assert len(slots) == 4 * 12


def test_after_a_boot_with_a_date_far_ahead_nothing_waits_for_that_date() -> None:
    done = berlin(2030, 1, 5, 2, 30)
    now = berlin(2027, 1, 5, 12, 0)
    aligned = decide(DAILY, done, now, BERLIN)
    assert aligned.slot is None, "finished slots do not run again"
    assert aligned.last_slot == berlin(2027, 1, 5, 2, 30)
    assert due_slot(DAILY, aligned.last_slot, now + timedelta(days=1)) == berlin(2027, 1, 6, 2, 30)
    weekly = replace(DAILY, cron="30 2 * * 0")
    for days, starts_anew in ((7, False), (9, True)):
        assert (decide(weekly, now + timedelta(days=days), now, BERLIN).last_slot < now) is starts_anew


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
