"""Days, and the days of the times in notes. Light module: hooks import it."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, tzinfo

SECONDS_PER_DAY = 86_400.0


def local_today() -> date:
    """Return today in the machine's present time zone; the C library would keep the one at the start of the process."""
    from datetime import date  # As in `parse_local_day`.

    time.tzset()
    return date.today()  # noqa: DTZ011 - a day of this machine


def effective_date(surfaced_at: str | None, created: str | None, updated: str | None) -> str | None:
    """Return the ISO day or time at which the user last meant what a note says; None without a date.

    This is its last change or, if nobody has edited the note, the time of its session: a backfill creates notes today
    of what was said years ago.
    """
    if surfaced_at and surfaced_at[:4].isdigit() and updated in (None, "", created):
        return surfaced_at
    return updated or created


def parse_local_day(stamp: str | None, zone: tzinfo | None = None) -> date | None:
    """Return the day of an ISO 8601 time in `zone` (default: this machine's), or of an ISO day; None for other text."""
    from datetime import date, datetime  # More expensive than all modules of a hook together; hooks do not call this.

    try:
        if len(text := stamp or "") <= len("2026-11-22"):
            return date.fromisoformat(text)
        at = datetime.fromisoformat(text)
        return (at.astimezone(zone) if at.tzinfo else at).date()
    except (ValueError, OverflowError, OSError):  # Neither a time nor a day, or out of the calendar's range.
        return None


def effective_day(surfaced_at: str | None, created: str | None, updated: str | None) -> date | None:
    """Return the day of `effective_date` on this machine; None without a date."""
    return parse_local_day(effective_date(surfaced_at, created, updated))


def local_day(seconds: float) -> date:
    """Return the day of a time in Unix seconds, on this machine."""
    from datetime import date  # As in `parse_local_day`.

    return date.fromtimestamp(seconds)  # noqa: DTZ012 - a day of this machine


_DAY, _TIME = len("2026-11-22"), len("2026-11-22T17:05:09")


def day_of(stamp: str) -> str:
    """Return what `parse_local_day` does, as ISO text and without `datetime`, for hooks; for a text that is no time
    with a zone, its first ten characters."""
    offset = _offset_seconds(stamp[_TIME:])
    if offset is None:
        return stamp[:_DAY]
    try:
        year, month, day = int(stamp[:4]), int(stamp[5:7]), int(stamp[8:10])
        seconds = 3600 * int(stamp[11:13]) + 60 * int(stamp[14:16]) + int(stamp[17:19]) - offset
        at = time.localtime(86_400 * _days_since_1970(year, month, day) + seconds)
    except (ValueError, OverflowError, OSError):
        return stamp[:_DAY]
    return f"{at.tm_year:04d}-{at.tm_mon:02d}-{at.tm_mday:02d}"


def _offset_seconds(rest: str) -> int | None:
    """Return the seconds of `Z` or `±hh:mm` after a time and any fraction of a second; None for anything else."""
    if rest[-1:] == "Z":
        return 0
    sign = {"+": 1, "-": -1}.get(rest[-6:-5])
    hours, minutes = rest[-5:-3], rest[-2:]
    if sign is None or rest[-3:-2] != ":" or not ((hours + minutes).isascii() and (hours + minutes).isdigit()):
        return None
    return sign * (3600 * int(hours) + 60 * int(minutes))


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Return the number of the day in the calendar of ISO 8601. Years begin in March here, so a leap day ends its
    year."""
    if month < 3:
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719_469
