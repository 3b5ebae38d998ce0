"""Times as commands tell them to people; for programs (`--json`) they are UTC."""

from __future__ import annotations

from datetime import datetime


def local_time(moment: datetime | float | None) -> str:
    """`Mon 2026-11-23 07:10:05` of this machine's zone; '-' for none. A number is Unix seconds."""
    if moment is None:
        return "-"
    aware = moment.astimezone() if isinstance(moment, datetime) else datetime.fromtimestamp(moment).astimezone()
    return f"{aware:%a %Y-%m-%d %H:%M:%S}"
