"""Decide which slot of a schedule is due. Pure: the clock and the time zone are passed in.

A slot is an aware datetime in UTC. A schedule that names an hour means the local wall clock, so that "03:00" stays
03:00 over a change of the clocks: a time that does not exist that day comes as much later as they are set forward, and
of a time that exists twice the first counts. A schedule for every hour counts in UTC and has neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from croniter import croniter

from .table import Schedule

DAY = timedelta(days=1)
REALIGN_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class Due:
    """The slot of one schedule to enqueue now, None for none, and the last slot to store."""

    slot: datetime | None
    last_slot: datetime


def decide(schedule: Schedule, last_slot: datetime | None, now: datetime, tz: tzinfo) -> Due:
    """Decide on the newest slot up to `now`. `last_slot` is the stored one; None for a fresh installation."""
    now = now.astimezone(UTC)
    newest = previous_slot(schedule, now, tz)
    if last_slot is None:
        return Due(newest if schedule.first == "now" else None, newest)
    last_slot = last_slot.astimezone(UTC)
    if last_slot < newest:
        return Due(newest, newest)
    # The clock was set back: finished slots do not run again. But where the old time is far ahead (a boot with a wrong
    # date may be years ahead), start anew from here instead of waiting for it.
    rest = next_slot(schedule, newest, tz) - newest + DAY if _by_wall_clock(schedule) else REALIGN_AFTER
    return Due(None, newest if last_slot - now > rest else last_slot)


def previous_slot(schedule: Schedule, now: datetime, tz: tzinfo) -> datetime:
    """Return the newest slot at or before `now`, in UTC."""
    now = now.astimezone(UTC)
    if not _by_wall_clock(schedule):
        start = now + timedelta(microseconds=1)  # get_prev excludes its start.
        return _datetime(croniter(schedule.cron, start, ret_type=datetime).get_prev())
    wall = now.astimezone(tz).replace(tzinfo=None) + DAY
    slots = croniter(schedule.cron, wall, ret_type=datetime)
    while True:
        slot = from_wall_clock(_datetime(slots.get_prev()), tz)
        if slot <= now:
            return slot


def next_slot(schedule: Schedule, now: datetime, tz: tzinfo) -> datetime:
    """Return the first slot after `now`, in UTC."""
    now = now.astimezone(UTC)
    if not _by_wall_clock(schedule):
        return _datetime(croniter(schedule.cron, now, ret_type=datetime).get_next())
    wall = now.astimezone(tz).replace(tzinfo=None) - DAY  # A day earlier: the clocks may have changed.
    slots = croniter(schedule.cron, wall, ret_type=datetime)
    while True:
        slot = from_wall_clock(_datetime(slots.get_next()), tz)
        if slot > now:
            return slot


def slot_key(schedule: Schedule, slot: datetime) -> str:
    """Return the unique key of the slot's job; all keys of a schedule begin with `<name>:`."""
    return f"{schedule.name}:{slot.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def from_wall_clock(wall: datetime, tz: tzinfo) -> datetime:
    """Return a naive local time as an instant in UTC: the first of two; if there is none, as much later as the clocks
    are set forward."""
    return wall.replace(tzinfo=tz, fold=0).astimezone(UTC)


def _by_wall_clock(schedule: Schedule) -> bool:
    """Whether the hour field names hours of the day, which are then local ones."""
    return "*" not in schedule.cron.split()[1]


def _datetime(value: object) -> datetime:
    assert isinstance(value, datetime)
    return value
