"""Days of times that notes carry. Light module: hooks ask it when something was said."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, tzinfo


def last_meant(surfaced_at: str | None, created: str | None, updated: str | None) -> str | None:
    """The day or time at which a note was last meant: of its last change or, while nobody has touched it since it was
    written, of when it was said. A backfill writes today what was said years ago.
    """
    if surfaced_at and surfaced_at[:4].isdigit() and updated in (None, "", created):
        return surfaced_at
    return updated or created


def local_day(stamp: str | None, zone: tzinfo | None = None) -> date | None:
    """The day of an ISO 8601 time in `zone`, by default this machine's; of a day alone, that day; None for neither."""
    from datetime import date, datetime  # costs a hook, which does not come here, more than all its own modules

    try:
        if len(text := stamp or "") <= len("2026-11-22"):
            return date.fromisoformat(text)
        at = datetime.fromisoformat(text)
        return (at.astimezone(zone) if at.tzinfo else at).date()
    except (ValueError, OverflowError, OSError):  # no time, or in no year of a calendar
        return None
