"""Which notes of an index are entries in use, in SQL: `vault.in_use` for rows of entry_meta as `m`."""

from __future__ import annotations

from typing import Any

from ..vault.in_use import NEVER_UNNAMED, is_place_of_entries
from ..vault.layout import ALWAYS_LOAD

SAYS_SOMETHING = (
    "(m.title <> trim(replace(replace(m.slug, '-', ' '), '_', ' '))"
    " OR EXISTS (SELECT 1 FROM chunk said WHERE said.entry_rowid = m.rowid AND said.text <> ''))"
)
IN_PLACE = f"m.special IN ('', '{ALWAYS_LOAD}')"
IS_NAMED_KIND = f"lower(COALESCE(m.kind, '')) IN ({', '.join(repr(kind) for kind in sorted(NEVER_UNNAMED))})"
STATUS = "lower(COALESCE(NULLIF(m.status, ''), 'active'))"
IN_USE = f"{IN_PLACE} AND {STATUS} = 'active' AND NOT {IS_NAMED_KIND} AND {SAYS_SOMETHING}"


def set_aside(connection: Any) -> dict[str, str]:
    """Paths of notes that lie where entries in use do and are none, each with its status; '' for what is no entry at
    all. `connection`: apsw's or sqlite3's."""
    status = f"CASE WHEN {IS_NAMED_KIND} OR NOT {SAYS_SOMETHING} THEN '' ELSE {STATUS} END"
    rows = connection.execute(f"SELECT m.path, {status} FROM entry_meta m WHERE NOT ({IN_USE}) AND {IN_PLACE}")
    return {row[0]: row[1] for row in rows if is_place_of_entries(row[0])}
