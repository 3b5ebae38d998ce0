"""The job reflect.session, which makes entries of what a session taught.

A child process reads and mines the transcript and prints candidates; the handler checks that the job is still its own,
takes the vault's lock, and writes. A memory is known by its fingerprint, its evidence by session and record ids, so
that mining the same bytes again changes nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict

from ...runtime.killpoint import kill_point
from ...runtime.layout import resolve_within
from ...runtime.settings import Settings
from ...services.ideas.research import request_research
from ...services.mining import REST, Mined, MiningRequest, mined_from_json
from ...services.model_mining import AGAIN, MODEL_SECONDS, AnswerCache
from ...services.remembering import ideas_to_research, remember
from ...services.sessions import OUTSIDE, follow_transcript
from ...services.stores import vault_store
from ...sources.transcripts.compressed import is_there, transcript_status
from ...vault.marker import Marker, forget_end, has_ended, mark_reflected, marker_path, read_marker, rewrite_marker
from ...vault.project import SWITCH_FILE, is_left_out, project_of
from ..queue.job import Dead, Postpone, Retry, RunningJob, run_json_child
from ..queue.kinds import Json
from ..queue.worklog import FIELDS

log = logging.getLogger(__name__)

MINING_SECONDS = 150.0
MAX_CANDIDATES_BYTES = 32 * 1024 * 1024
CHILD = "memoryvault.services.mining"
LEFT_OUT = f"{SWITCH_FILE} leaves its project out"
ATTEMPTS_WITH_A_MODEL = 2
"""Later attempts ask no agent and do without the local model, so that neither keeps the session from being mined."""


def reflect_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle reflect.session."""
    session = str(job.args["session"])
    marker = read_marker(marker_path(settings.state.markers, session))
    if marker is None:
        return {"nothing": "no open marker: mined already"}
    roots = [str(root) for root in settings.transcript_folders]
    marker = follow_transcript(settings.state.markers, marker, roots)
    if resolve_within(marker.transcript, roots) is None:
        raise Dead(OUTSIDE)
    if not is_there(marker.transcript):
        # The host writes it asynchronously; the sweep comes back to it, or finds it dead.
        return {"nothing": "there is no transcript yet"}
    if is_left_out(marker.cwd):  # The user excluded the project after the hooks had recorded the session.
        _pass_over(settings, marker)
        return {"nothing": LEFT_OUT}
    return mine_session(settings, job, marker, lambda mined: _advance(settings, marker, mined))


def mine_session(
    settings: Settings,
    job: RunningJob,
    marker: Marker,
    advance: Callable[[Mined], None],
    *,
    run: str | None = None,
    most_waiting: int | None = None,
) -> Mapping[str, Json]:
    """Mine what follows the marker's offset, write it, and call `advance` with how far the session is mined; return the
    counts for the job's history. `run` and `most_waiting`: see `remember`.

    Raises Retry, JobLost, VaultUnavailable; Postpone where a part of a long session is left.
    """
    began = time.monotonic()
    mined = _mine_in_child(settings, job, marker)
    # Nothing of this reading is kept then. The last attempts ask no model, and read the session without it.
    if isinstance(seconds := mined.model.get(AGAIN), float):
        raise Retry(f"the model could not be asked: {mined.model.get('failed')}", seconds)
    store = vault_store(settings)
    # A crash before `advance` repeats the write, without effect.
    with store.lock():
        job.check_owned()
        kill_point("before-effect")
        remembered = remember(mined.candidates, store, settings, host=marker.host, run=run, most_waiting=most_waiting)
        kill_point("after-effect")
        job.check_owned()
        advance(mined)
    if remembered.written:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    for slug in ideas_to_research(store, remembered):
        request_research(job, slug)
    AnswerCache(settings.state).forget(mined.answers)
    counts: dict[str, Json] = {
        **remembered.counts,
        "bytes": mined.mined_until - marker.offset,
        "bad_lines": mined.bad_lines,
        "unconfirmed": mined.unconfirmed,
    }
    if mined.mined_until > marker.offset:  # Otherwise nothing was new.
        _log_mined(
            marker.session_id,
            marker.cwd,
            candidates=len(mined.candidates),
            duration_ms=round((time.monotonic() - began) * 1000),
            **counts,
        )
    if mined.has_more:
        raise Postpone(REST, 0.0)
    return {**counts, "model": dict(mined.model)} if mined.model else counts


LOGGED_AS = {"candidates": "candidates_mined", "saved": "auto_saved", "for_review": "proposed"}
"""Fields of the log that have another name than the count in the job's history."""


def _log_mined(session: str, cwd: str, **counts: Json) -> None:
    """Log one line of counts for a mined session; the log never holds what was said."""
    told = {"auto_saved": 0, "proposed": 0, "inboxed": 0}
    told |= {LOGGED_AS.get(name, name): count for name, count in counts.items() if isinstance(count, int)}
    log.info("session mined", extra={FIELDS: {"session": session, "project": project_of(cwd) or "none", **told}})


def _mine_in_child(settings: Settings, job: RunningJob, marker: Marker) -> Mined:
    with_a_model = job.attempt <= ATTEMPTS_WITH_A_MODEL
    local_only = settings.reflection.miner == "local" or not with_a_model
    request = MiningRequest(
        marker.transcript,
        marker.host,
        mined_until=marker.offset,
        context_offset=marker.resume,
        session=marker.session_id,
        local_only=local_only,
        insist=with_a_model,
    )
    return run_json_child(
        job,
        settings,
        CHILD,
        asdict(request),
        parse=mined_from_json,
        deadline_seconds=MINING_SECONDS + (0.0 if local_only else MODEL_SECONDS),
        verb="mining",
        max_stdout_bytes=MAX_CANDIDATES_BYTES,
    )


def _pass_over(settings: Settings, marker: Marker) -> None:
    """Mark the transcript as mined to its end, so that it stays unmined even if its project is included again."""
    markers = settings.state.markers
    rewrite_marker(markers, marker.with_offset(transcript_status(marker.transcript).size))
    if has_ended(markers, marker.session_id):
        mark_reflected(markers, marker.session_id)
        forget_end(markers, marker.session_id)


def _advance(settings: Settings, marker: Marker, mined: Mined) -> None:
    """Advance the marker's offset; mark a session as reflected once it has ended and is mined to its last byte."""
    markers = settings.state.markers
    if read_marker(marker_path(markers, marker.session_id)) is None:
        return
    rewrite_marker(markers, marker.with_offset(mined.mined_until, mined.context_offset))
    try:
        at_the_end = transcript_status(marker.transcript).size <= mined.mined_until
    except FileNotFoundError:
        return
    if at_the_end and has_ended(markers, marker.session_id):
        mark_reflected(markers, marker.session_id)
        forget_end(markers, marker.session_id)
