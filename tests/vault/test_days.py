"""On which day of the user's something was said."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.runtime.days import day_of, effective_date, effective_day, local_day, parse_local_day

EAST, WEST = timezone(timedelta(hours=14)), timezone(-timedelta(hours=10))


@pytest.mark.parametrize(
    ("stamp", "zone", "day"),
    [
        ("2026-03-01T10:30:00Z", EAST, date(2026, 3, 2)),
        ("2026-03-01T09:30:00Z", WEST, date(2026, 2, 28)),
        ("2026-03-01T23:30:00+02:00", UTC, date(2026, 3, 1)),
        ("2026-03-01T23:30:00", EAST, date(2026, 3, 1)),
        ("2026-03-01", WEST, date(2026, 3, 1)),
        ("9999-12-31T23:59:59Z", EAST, None),
        ("last week", UTC, None),
        ("2026-13-45", UTC, None),
        (None, UTC, None),
    ],
)
def test_a_time_is_on_the_day_of_the_users_zone(stamp: str | None, zone: timezone, day: date | None) -> None:
    assert parse_local_day(stamp, zone) == day


@pytest.mark.parametrize(
    ("surfaced_at", "created", "updated", "meant"),
    [
        ("2026-02-10T22:47:13Z", "2026-11-23", "2026-11-23", "2026-02-10T22:47:13Z"),
        ("2026-02-10T22:47:13Z", "2026-11-23", "2026-12-01", "2026-12-01"),
        ("last summer", "2026-11-23", None, "2026-11-23"),
        (None, "2026-11-23", "2026-12-01", "2026-12-01"),
        (None, None, None, None),
    ],
)
def test_a_note_was_last_meant_when_it_was_said_until_somebody_changes_it(
    surfaced_at: str | None, created: str | None, updated: str | None, meant: str | None
) -> None:
    assert effective_date(surfaced_at, created, updated) == meant


@pytest.fixture(params=["Pacific/Kiritimati", "Pacific/Honolulu", "Europe/Berlin", "UTC"], scope="module")
def of_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


FIRST, LAST = datetime(1900, 1, 1), datetime(2100, 12, 31)  # noqa: DTZ001  hypothesis puts the zone in


@given(st.datetimes(FIRST, LAST, timezones=ZONES))
def test_a_hook_tells_the_same_day_as_all_others(of_zone: str, at: datetime) -> None:
    assert day_of(at.isoformat()) == str(parse_local_day(at.isoformat()))
    stamp = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    assert day_of(stamp) == str(parse_local_day(stamp))


def test_the_day_of_a_clock_is_that_of_the_time_it_shows(of_zone: str) -> None:
    at = datetime(2026, 1, 30, 12, tzinfo=UTC)
    assert local_day(at.timestamp()) == parse_local_day(at.isoformat())
    assert effective_day(None, at.isoformat(), None) == local_day(at.timestamp())


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-03-01", "2026-03-01"),
        ("2026-03-01 was a Sunday", "2026-03-01"),
        ("2026-03-01T1x:30:00Z", "2026-03-01"),
        *((f"2026-03-01T17:05:09{offset}", "2026-03-01") for offset in ("+²²:00", "+00:¹¹", "+ab:cd", "+", "-00:0")),
        ("last week", "last week"),
        ("Z", "Z"),
        ("", ""),
    ],
)
def test_of_what_is_no_time_with_a_zone_a_hook_shows_the_beginning(stamp: str, shown: str) -> None:
    assert day_of(stamp) == shown
