"""Days of times that notes carry."""

from __future__ import annotations

from datetime import date, datetime, tzinfo


def local_day(stamp: str | None, zone: tzinfo | None = None) -> date | None:
    """The day of an ISO 8601 time in `zone`, by default this machine's; of a day alone, that day; None for neither."""
    try:
        if len(text := stamp or "") <= len("2026-11-22"):
            return date.fromisoformat(text)
        at = datetime.fromisoformat(text)
        return (at.astimezone(zone) if at.tzinfo else at).date()
    except (ValueError, OverflowError, OSError):  # no time, or in no year of a calendar
        return None
