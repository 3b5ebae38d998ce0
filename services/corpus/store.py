"""Storing what was mined from old sessions until it is settled: scrubbed candidates, one file for each reading.

The file is `<state>/corpus/<identity>@<offset>.json`. A reading that is repeated writes the same file, so nothing is
counted twice. All of it can be mined again from the transcripts, as long as those exist.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ...pipelines.candidate import Candidate
from ...pipelines.corpus import Saying
from ...runtime.atomic_file import replace_file
from ...runtime.layout import StatePaths, make_private_folder
from ..cursors import Cursors
from ..mining import Mined, candidate_from_json

log = logging.getLogger(__name__)

FOLDER = "corpus"
"""Name of the folder in the state folder."""
SCAN = "corpus"
"""Scan name of the cursors, one for each transcript."""
ROOTS = "corpus.roots"
"""Scan name of the folders that the user named with --root."""


@dataclass(frozen=True)
class OldSession:
    """A session that was mined from its transcript alone."""

    session: str
    host: str
    cwd: str
    path: str
    modified: float
    """Modification time of the transcript when it was mined, unix seconds."""
    offset: int
    """Byte offset up to which the transcript is mined."""


class CorpusStore:
    """The cursors in state.db, and the files of candidates."""

    def __init__(self, state: StatePaths) -> None:
        self._folder = Path(state.root) / FOLDER
        self._cursors = Cursors(state.state_db, SCAN)
        self._roots = Cursors(state.state_db, ROOTS)

    def cursor(self, identity: str) -> Mapping[str, Any]:
        """Load how far a transcript is mined (offset, resume, size, run) and its session; {} if it never was."""
        return self._cursors.get(identity) or {}

    def cursors(self) -> Mapping[str, Mapping[str, Any]]:
        """Load the cursors of all transcripts, by identity."""
        return self._cursors.all()

    def sessions(self) -> dict[str, OldSession]:
        """List the sessions that were mined, by id. Cursors of an older release that name no session are left out."""
        sessions: dict[str, OldSession] = {}
        for cursor in self._cursors.all().values():
            session = cursor.get("session")
            if isinstance(session, str) and session:
                sessions[session] = OldSession(
                    session,
                    host=str(cursor.get("host", "")),
                    cwd=str(cursor.get("cwd", "")),
                    path=str(cursor.get("path", "")),
                    modified=float(cursor.get("modified", 0.0)),
                    offset=int(cursor.get("offset", 0)),
                )
        return sessions

    def advance(self, identity: str, value: Mapping[str, Any]) -> None:
        """Store how far a transcript is mined. Call it after `keep`."""
        self._cursors.set(identity, value)

    def keep(self, identity: str, offset: int, modified: float, mined: Mined) -> None:
        """Store the candidates of the reading that began at byte `offset`, durably. Repeated, it replaces itself."""
        file = self._folder / f"{identity}@{offset:016d}.json"
        if not mined.candidates:
            file.unlink(missing_ok=True)
            return
        make_private_folder(str(self._folder))
        value = {
            "v": 1,
            "host": mined.host,
            "modified": modified,
            "candidates": [asdict(candidate) for candidate in mined.candidates],
        }
        replace_file(file, json.dumps(value).encode("ascii"))

    def sayings(self) -> Iterator[Saying]:
        """Load all candidates. A damaged file is skipped: `--reset` mines its transcript again."""
        if not self._folder.is_dir():
            return
        for file in sorted(self._folder.glob("*.json")):
            try:
                value = json.loads(file.read_bytes())
                for place, fields in enumerate(value["candidates"]):
                    candidate = candidate_from_json(fields)
                    at = _moment_of(candidate, float(value["modified"]))
                    yield Saying(candidate, str(value["host"]), (at, file.stem, place))
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.warning("%s is damaged and passed over: %s", file, error)

    def forget(self) -> None:
        """Delete cursors and candidates, so that all is mined again. What is in the vault stays."""
        self._cursors.forget_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    def allow_root(self, root: Path) -> None:
        """Let jobs read transcripts in this folder, which the user named."""
        self._roots.set(str(root), {})

    def roots(self) -> list[str]:
        """List the folders that the user named."""
        return sorted(self._roots.all())


def _moment_of(candidate: Candidate, modified: float) -> float:
    """When it was said, unix seconds; by the file only if it does not say: a copied file has a time of its own."""
    return datetime.fromisoformat(candidate.said_at).timestamp() if candidate.said_at else modified
