"""The facts in an entry's frontmatter, as the command and the console show them."""

from __future__ import annotations

from collections.abc import Mapping

from ..runtime.days import parse_local_day
from ..vault.entry import Entry


def facts_of(entry: Entry) -> Mapping[str, str]:
    """Return names and values of the frontmatter, without path, title and links to other notes."""
    shown = {
        "Kind": entry.kind,
        "Status": entry.effective_status,
        "Project": entry.project,
        "Said": said.isoformat() if (said := parse_local_day(entry.surfaced_at)) else None,
        "Made": entry.created,
        "Changed": entry.updated,
        "Seen": f"{entry.occurrences} times" if entry.occurrences > 1 else "once",
        "Confidence": entry.confidence,
        "Tags": ", ".join(entry.tags),
        "Always loaded": "yes" if entry.always_load else None,
        "Guard": entry.guard or None,
        "Superseded because": entry.superseded_reason,
    }
    return {name: value for name, value in shown.items() if value}
