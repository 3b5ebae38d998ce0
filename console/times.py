"""Times, durations and sizes as short text, in the local zone."""

from __future__ import annotations

from datetime import datetime

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


def when(seconds: float | None) -> str:
    """`22 Nov 2026, 07:10`; '–' for none."""
    if not seconds:
        return "–"
    moment = datetime.fromtimestamp(seconds).astimezone()
    return f"{moment.day} {moment:%b %Y, %H:%M}"


def when_iso(text: str | None) -> str:
    """`when` for an ISO time; a day without a time stays a day."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return text or "–"
    if len(text or "") <= 10:
        return f"{moment.day} {moment:%b %Y}"
    try:
        return when(moment.timestamp())
    except (ValueError, OverflowError, OSError):  # a year outside the calendar
        return text or "–"


def ago(seconds: float | None, now: float) -> str:
    """`12 s ago`, `in 3 min`, `5 days ago`; '–' for none."""
    if not seconds:
        return "–"
    told = lasting(abs(now - seconds))
    return f"{told} ago" if seconds <= now else f"in {told}"


def lasting(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min`, `5 h`, `12 days`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.0f} h"
    return f"{seconds / DAY:,.0f} days"


def size(number: float) -> str:
    """Bytes as text: `812 bytes`, `1.2 MB`."""
    if number < 1000:
        return f"{number:.0f} bytes"
    if number < 1e6:
        return f"{number / 1e3:.0f} kB"
    return f"{number / 1e6:,.1f} MB"
