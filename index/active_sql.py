"""Which indexed notes are entries in use: `vault.active` as SQL conditions on rows of entry_meta, aliased `m`."""

from __future__ import annotations

from typing import Any

from ..runtime.layout import ALWAYS_LOAD
from ..vault.active import EXPLICIT_KINDS, is_entry_place
from ..vault.statuses import OUT_OF_USE

HAS_CONTENT = (
    "(m.title <> trim(replace(replace(m.slug, '-', ' '), '_', ' '))"
    " OR EXISTS (SELECT 1 FROM chunk said WHERE said.entry_rowid = m.rowid AND said.text <> ''))"
)
IN_ENTRY_PLACE = f"m.special IN ('', '{ALWAYS_LOAD}')"
IS_EXPLICIT_KIND = f"lower(COALESCE(m.kind, '')) IN ({', '.join(repr(kind) for kind in sorted(EXPLICIT_KINDS))})"
STATUS = "lower(COALESCE(NULLIF(m.status, ''), 'active'))"
IS_IN_USE_STATUS = f"{STATUS} NOT IN ({', '.join(repr(status) for status in OUT_OF_USE)})"
IN_USE = f"{IN_ENTRY_PLACE} AND {IS_IN_USE_STATUS} AND NOT {IS_EXPLICIT_KIND} AND {HAS_CONTENT}"


def select_set_aside(connection: Any) -> dict[str, str]:
    """Return the status of each note that is in a place of entries in use but is not in use, by path.

    The status is '' for a note that no status would make an entry. `connection`: of apsw or sqlite3.
    """
    status = f"CASE WHEN {IS_EXPLICIT_KIND} OR NOT {HAS_CONTENT} THEN '' ELSE {STATUS} END"
    rows = connection.execute(f"SELECT m.path, {status} FROM entry_meta m WHERE NOT ({IN_USE}) AND {IN_ENTRY_PLACE}")
    return {row[0]: row[1] for row in rows if is_entry_place(row[0])}
