"""Progress of mining old sessions: a cursor for each in state.db, in place of a fresh session's marker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...runtime.layout import StatePaths
from ...sources.transcripts.corpus import Transcript
from ..cursors import Cursors
from ..mining import Mined

SCAN = "corpus"
"""Scan name of the transcripts' cursors."""
ROOTS = "corpus.roots"
"""Scan name of the folders that the user named with --root."""


class CorpusStore:
    """The cursors of old sessions, by the transcript's identity."""

    def __init__(self, state: StatePaths) -> None:
        self._cursors = Cursors(state.state_db, SCAN)
        self._roots = Cursors(state.state_db, ROOTS)

    def cursor(self, identity: str) -> Mapping[str, Any]:
        """Return how far a transcript is mined (offset, resume, size) and its session; {} if it never was."""
        return self._cursors.get(identity) or {}

    def cursors(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the cursors of all transcripts, by identity."""
        return self._cursors.all()

    def advance(self, transcript: Transcript, mined: Mined) -> None:
        """Store how far a transcript is mined. Call it after its results are written."""
        self._cursors.set(
            transcript.identity,
            {
                "offset": mined.mined_until,
                "resume": mined.context_offset,
                "size": transcript.size,
                "path": str(transcript.path),
                "session": transcript.session,
                "host": transcript.host,
                "cwd": transcript.cwd,
                "modified": transcript.modified,
                "has_more": mined.has_more,
            },
        )

    def forget(self) -> None:
        """Delete the cursors, so that everything is mined again. The vault is not changed."""
        self._cursors.forget_all()

    def allow_root(self, root: Path) -> None:
        """Let jobs read transcripts in this folder, which the user named."""
        self._roots.set(str(root), {})

    def roots(self) -> list[str]:
        """Return the folders that the user named."""
        return sorted(self._roots.all())
