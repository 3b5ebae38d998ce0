"""The job reflect.session, which makes entries of what a session taught.

A child process reads and mines the transcript and prints candidates; the handler checks that the job is still its own,
takes the vault's lock, and writes. A memory is known by its fingerprint, its evidence by session and record ids, so
that mining the same bytes again changes nothing.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict

from ...runtime.errors import VaultUnavailable
from ...runtime.killpoint import kill_point
from ...runtime.layout import resolve_within
from ...runtime.settings import Settings
from ...services.ideas.ledger import research_key
from ...services.mining import REST, Mined, MiningRequest, mined_from_json
from ...services.model_mining import MODEL_SECONDS, AnswerCache, read_again_later
from ...services.remembering import MemoryReport, ideas_to_research, remember
from ...services.sessions import OUTSIDE, follow_transcript
from ...services.stores import vault_store
from ...sources.transcripts.compressed import is_there, transcript_status
from ...vault.marker import Marker, forget_end, has_ended, mark_reflected, marker_path, read_marker, rewrite_marker
from ...vault.project import SWITCH_FILE, is_left_out, project_of
from ..queue.child_job import run_json_child
from ..queue.job import Dead, Handler, Postpone, RunningJob
from ..queue.kinds import Json
from ..queue.worklog import FIELDS

log = logging.getLogger(__name__)

MINING_SECONDS = 150.0
VAULT_PAUSE_SECONDS = 10.0
"""Pause between two attempts to find a vault, whose disk may not be mounted yet."""
MAX_CANDIDATES_BYTES = 32 * 1024 * 1024
CHILD = "memoryvault.tasks.jobs.mining_child"
ATTEMPTS_WITH_A_MODEL = 2
"""Later attempts ask no agent, and do not insist on the local model: neither may keep the session from being mined."""


def reflect_handler(settings: Settings) -> Handler:
    """Make the handler of reflect.session."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        began = time.monotonic()
        session = str(job.args["session"])
        marker = read_marker(marker_path(settings.state.harness, session))
        if marker is None:
            return {"nothing": "no open marker: mined already"}
        roots = [str(root) for root in settings.transcript_folders]
        marker = follow_transcript(settings.state.harness, marker, roots)
        if resolve_within(marker.transcript, roots) is None:
            raise Dead(OUTSIDE)
        if not is_there(marker.transcript):
            # The host writes it asynchronously; the sweep comes back to it, or finds it dead.
            return {"nothing": "there is no transcript yet"}
        if is_left_out(marker.cwd):  # Since it was recorded: the hooks record no session of such a project.
            _pass_over(settings, marker)
            return {"nothing": f"{SWITCH_FILE} leaves its project out"}
        mined = _mine_in_child(settings, job, marker)
        read_again_later(mined.model)
        try:
            remembered = _commit(settings, job, marker, mined)
        except VaultUnavailable as error:
            raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
        if remembered.written:
            job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
        for slug in ideas_to_research(vault_store(settings), remembered):
            job.enqueue("research.idea", {"slug": slug}, unique_key=research_key(slug))
        AnswerCache(settings.state).forget(mined.answers)
        counts: dict[str, Json] = {
            **remembered.counts,
            "bytes": mined.mined_until - marker.offset,
            "bad_lines": mined.bad_lines,
            "unconfirmed": mined.unconfirmed,
        }
        if mined.mined_until > marker.offset:  # Else nothing was new: no line for it.
            log_mined(
                marker.session_id,
                marker.cwd,
                candidates=len(mined.candidates),
                duration_ms=round((time.monotonic() - began) * 1000),
                **counts,
            )
        if mined.has_more:
            raise Postpone(REST, 0.0)
        return {**counts, "model": dict(mined.model)} if mined.model else counts

    return handle


LOGGED_AS = {"candidates": "candidates_mined", "saved": "auto_saved", "for_review": "proposed"}
"""Fields of the log that have another name than the count in the job's history."""


def log_mined(session: str, cwd: str, **counts: Json) -> None:
    """One line of what a reading of a session came to, in numbers: the log never holds what was said."""
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
        last_agent_offset=marker.said,
        session=marker.session_id,
        local_only=local_only,
        insist=with_a_model,
    )
    return run_json_child(
        job,
        settings,
        CHILD,
        asdict(request),
        parse=lambda stdout: mined_from_json(json.loads(stdout)),
        deadline_seconds=MINING_SECONDS + (0.0 if local_only else MODEL_SECONDS),
        verb="mining",
        answer="candidates",
        max_stdout_bytes=MAX_CANDIDATES_BYTES,
    )


def _commit(settings: Settings, job: RunningJob, marker: Marker, mined: Mined) -> MemoryReport:
    """Write under the vault's lock, then advance the marker. A crash in between repeats the write, without effect."""
    store = vault_store(settings)
    with store.lock():
        job.check_owned()
        kill_point("before-effect")
        remembered = remember(mined.candidates, store, settings, host=marker.host)
        kill_point("after-effect")
        job.check_owned()
        _advance(settings, marker, mined)
    return remembered


def _pass_over(settings: Settings, marker: Marker) -> None:
    """Nothing that the session has said until now is mined, even where its project is let in again."""
    harness = settings.state.harness
    rewrite_marker(harness, marker.with_offset(transcript_status(marker.transcript).size))
    if has_ended(harness, marker.session_id):
        mark_reflected(harness, marker.session_id)
        forget_end(harness, marker.session_id)


def _advance(settings: Settings, marker: Marker, mined: Mined) -> None:
    """Advance the marker's offset; mark a session as reflected once it has ended and is mined to its last byte."""
    harness = settings.state.harness
    if read_marker(marker_path(harness, marker.session_id)) is None:
        return
    rewrite_marker(harness, marker.with_offset(mined.mined_until, mined.context_offset, mined.last_agent_offset))
    try:
        at_the_end = transcript_status(marker.transcript).size <= mined.mined_until
    except FileNotFoundError:
        return
    if at_the_end and has_ended(harness, marker.session_id):
        mark_reflected(harness, marker.session_id)
        forget_end(harness, marker.session_id)
