"""Days: how many seconds they have, and the days of the times that notes carry. Light module: hooks import it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, tzinfo

SECONDS_PER_DAY = 86_400.0


def effective_date(surfaced_at: str | None, created: str | None, updated: str | None) -> str | None:
    """The ISO day or time at which the user last meant what a note says; None if the note has no date.

    That is its last change, or, as long as nobody has edited the note, the time of the session it was said in: a
    backfill creates notes today of what was said years ago."""
    if surfaced_at and surfaced_at[:4].isdigit() and updated in (None, "", created):
        return surfaced_at
    return updated or created


def parse_local_day(stamp: str | None, zone: tzinfo | None = None) -> date | None:
    """The day of an ISO 8601 time in `zone` (default: this machine's), or an ISO day itself; None for any other
    text."""
    from datetime import date, datetime  # More expensive than all modules of a hook together; hooks do not call this.

    try:
        if len(text := stamp or "") <= len("2026-11-22"):
            return date.fromisoformat(text)
        at = datetime.fromisoformat(text)
        return (at.astimezone(zone) if at.tzinfo else at).date()
    except (ValueError, OverflowError, OSError):  # Neither a time nor a day, or out of the calendar's range.
        return None
