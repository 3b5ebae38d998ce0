"""How far each scan has come in each of its sources, in state.db."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..runtime.json_text import parse_json
from .state_db import state_transaction


class Cursors:
    """The cursors of one scan ('corpus', 'discovery', 'skills'): a JSON object for each source."""

    def __init__(self, path: Path | str, scan: str) -> None:
        self._path = path
        self._scan = scan

    @property
    def _is_there(self) -> bool:
        """Whether state.db exists: reading must not create it, least of all in a dry run."""
        return Path(self._path).exists()

    def get(self, source: str) -> Mapping[str, Any] | None:
        """Return the cursor of one source; None before its first scan."""
        if not self._is_there:
            return None
        with state_transaction(self._path) as conn:
            row = conn.execute(
                "SELECT value FROM cursor WHERE scan = ? AND source = ?", (self._scan, source)
            ).fetchone()
            return None if row is None else _object(row["value"])

    def all(self) -> Mapping[str, Mapping[str, Any]]:
        """Return every source's cursor."""
        if not self._is_there:
            return {}
        with state_transaction(self._path) as conn:
            rows = conn.execute("SELECT source, value FROM cursor WHERE scan = ?", (self._scan,)).fetchall()
            return {row["source"]: _object(row["value"]) for row in rows}

    def set(self, source: str, value: Mapping[str, Any]) -> None:
        """Store a cursor durably. Call it after the scan's effects, so that a crash only repeats them."""
        self.set_all({source: value})

    def set_all(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Store several cursors, all or none."""
        with state_transaction(self._path) as conn:
            conn.executemany(
                "INSERT INTO cursor(scan, source, value, updated_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT(scan, source) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                [
                    (self._scan, source, json.dumps(value, ensure_ascii=False), time.time())
                    for source, value in values.items()
                ],
            )

    def forget(self, source: str | None = None) -> None:
        """Delete the cursor of one source; None: all of the scan."""
        with state_transaction(self._path) as conn:
            conn.execute("DELETE FROM cursor WHERE scan = ? AND source = ifnull(?, source)", (self._scan, source))


def _object(text: str) -> Mapping[str, Any]:
    """Parse a cursor within the transaction, where invalid JSON counts as damage."""
    value: Mapping[str, Any] = parse_json(text)
    return value
