"""What the user took back by `memory undo`: old sessions that are looked at again do not bring it back.

It stands in state.db, which is copied daily: of all that was decided this alone is not to be read off the notes, since
what told of it is gone from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ..vault.entry import parse_entry
from ..vault.layout import StatePaths
from .cursors import Cursors

SCAN = "undone"
"""Scan name under which it stands in state.db, by session."""

Evidence: TypeAlias = "tuple[str, str]"
"""Session and record."""


class TakenBack:
    """The evidence that was taken out of the vault."""

    def __init__(self, state: StatePaths) -> None:
        self._sessions = Cursors(state.state_db, SCAN)

    def add(self, evidence: Iterable[Evidence]) -> None:
        """Put it down, durably. Call it before the vault is changed: what a note still says is not taken back."""
        records: dict[str, set[str]] = {}
        for session, record in evidence:
            records.setdefault(session, set()).add(record)
        known = {session: (self._sessions.get(session) or {}).get("records", ()) for session in records}
        self._sessions.set_all(
            {session: {"records": sorted({*known[session], *records[session]})} for session in records}
        )

    def evidence(self) -> set[Evidence]:
        """All of it."""
        return {(session, record) for session, value in self._sessions.all().items() for record in value["records"]}

    def forget(self) -> None:
        """As if nothing had been taken back."""
        self._sessions.forget_all()


def evidence_in(path: str, text: str) -> set[Evidence]:
    """What the note at `path` says where it was found."""
    note = parse_entry(path, text.encode("utf-8", "surrogateescape"))
    return {(source.session, record) for source in note.sources for record in source.records}
