"""The job reflect.corpus: like reflect.session, for an old session without a hook's marker.

Its progress is kept in state.db instead. Its writes belong to the run of the backfill, which one undo reverts, and only
a limited number of its proposals wait for the user at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...runtime.settings import Settings
from ...services.corpus.backfill import (
    advance,
    cursors_of,
    is_live,
    is_mined,
    live_transcripts,
    readable_folders,
    refusal,
)
from ...services.journal import BACKFILL
from ...sources.transcripts.corpus import Transcript, describe
from ...vault.marker import Marker
from ...vault.project import is_left_out
from ..queue.job import Dead, RunningJob
from ..queue.kinds import Json
from .reflection import LEFT_OUT, mine_session


def corpus_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle reflect.corpus."""
    identity, path = str(job.args["identity"]), Path(str(job.args["path"]))
    transcript = _find_transcript(settings, identity, path)
    if isinstance(transcript, str):
        return {"nothing": transcript}
    cursor = cursors_of(settings).get(identity) or {}
    if is_mined(transcript, cursor):
        return {"nothing": "mined already"}
    marker = Marker(
        transcript.session,
        transcript=str(transcript.path),
        cwd=transcript.cwd,
        host=transcript.host,
        offset=int(cursor.get("offset", 0)),
        resume=cursor.get("resume"),
    )
    run = f"{BACKFILL}:{job.args['run']}"
    most = settings.reflection.corpus_review_entries
    return mine_session(
        settings, job, marker, lambda mined: advance(settings, transcript, mined), run=run, most_waiting=most
    )


def _find_transcript(settings: Settings, identity: str, path: Path) -> Transcript | str:
    """Return the transcript, or why there is nothing to mine. Raises Dead, OSError."""
    if (why := refusal(str(path), readable_folders(settings))) is not None:
        raise Dead(f"{path} is refused: {why}")
    try:
        # A file in a host's own folder belongs to that host, whatever its first lines look like.
        transcript = describe(path, identity.partition("-")[0])
    except FileNotFoundError:
        return "the transcript is gone"
    if transcript is None or transcript.identity != identity:
        return "another session is in the file now"
    if is_live(transcript, live_transcripts(settings)):
        return "the session goes on: reflect.session mines it"
    return LEFT_OUT if is_left_out(transcript.cwd) else transcript
