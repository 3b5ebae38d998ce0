"""The jobs recover.orphans and markers.gc, which read session markers."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence

from ...runtime.layout import resolve_within
from ...runtime.settings import Settings
from ...services.sessions import OUTSIDE, Unmined, collect_old_markers, sweep
from ..queue.enqueue import open_ledger
from ..queue.job import RunningJob
from ..queue.kinds import Json
from ..queue.ledger import MAX_DEAD
from ..queue.worklog import Lasting

log = logging.getLogger(__name__)
UNKNOWN_FOLDER = Lasting(log)

MARKER_DAYS = 30
"""Days after which the marker of a reflected session is deleted."""


def recover_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle recover.orphans: it enqueues reflect.session for each silent session that is not mined
    completely.

    Sessions whose job has died since their last activity are left out, because it would die again every few minutes.
    """
    roots = [str(root) for root in settings.transcript_folders]
    result = sweep(settings.state.markers, roots, now=time.time())
    known = [each for each in result.to_mine if resolve_within(each.transcript, roots) is not None]
    if outside := next((each for each in result.to_mine if each not in known), None):
        folder = os.path.dirname(outside.transcript)
        UNKNOWN_FOLDER.is_so(f"sessions in {folder} are not mined: the worker knows no agent that keeps its own there")
    given_up = _given_up(settings, known)
    to_mine = [each.session for each in known if each.session not in given_up]
    for session in to_mine:
        job.enqueue("reflect.session", {"session": session}, unique_key=f"reflect.session:{session}")
    return {
        "to_mine": len(to_mine),
        "given_up": len(given_up),
        "outside": len(result.to_mine) - len(known),
        "finished": len(result.finished),
        "dead_pointers": len(result.dead_pointers),
    }


def _given_up(settings: Settings, unmined: Sequence[Unmined]) -> set[str]:
    """Return the sessions whose job has died since, for a reason that still holds; each one's folder is known by
    now."""
    if not unmined:
        return set()
    died: dict[str, float] = {}
    with open_ledger(settings) as ledger:
        for dead in ledger.list_jobs(["dead"], kind="reflect.session", most=MAX_DEAD):
            if isinstance(dead.args, dict) and dead.finished_at is not None and dead.error != OUTSIDE:
                session = str(dead.args.get("session"))
                died[session] = max(died.get(session, 0.0), dead.finished_at)
    return {each.session for each in unmined if died.get(each.session, 0.0) > each.last_sign}


def collect_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle markers.gc: it deletes the markers of sessions that were reflected long ago."""
    job.check_owned()
    return {"deleted": collect_old_markers(settings.state.markers, now=time.time(), days=MARKER_DAYS)}
