"""Jobs about session markers: recover.orphans and markers.gc."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence

from ...runtime.layout import resolve_within
from ...runtime.settings import Settings
from ...services.sessions import OUTSIDE, Unmined, collect_old_markers, sweep
from ..queue.enqueue import open_ledger
from ..queue.job import Handler, RunningJob
from ..queue.kinds import Json
from ..queue.ledger import MAX_DEAD
from ..queue.worklog import Lasting

log = logging.getLogger(__name__)

IDLE_SECONDS = 30 * 60.0
"""A session silent for so long is reflected."""
CRASH_SECONDS = 60 * 60.0
"""A session with unread text and no event for so long has crashed."""
MARKER_DAYS = 30
"""Until the marker of a reflected session is deleted."""


def recover_handler(settings: Settings) -> Handler:
    """recover.orphans: a reflect.session job for each session that is silent and not mined to its end.

    One whose job has died since its last sign of life is passed over: it would die again, every few minutes for ever.
    """
    roots = [str(root) for root in settings.transcript_folders]
    unknown = Lasting(log)

    def handle(job: RunningJob) -> Mapping[str, Json]:
        result = sweep(
            settings.state.markers,
            roots,
            now=time.time(),
            idle_seconds=IDLE_SECONDS,
            crash_seconds=CRASH_SECONDS,
        )
        known = [each for each in result.to_mine if resolve_within(each.transcript, roots) is not None]
        if outside := next((each for each in result.to_mine if each not in known), None):
            folder = os.path.dirname(outside.transcript)
            unknown.is_so(f"sessions in {folder} are not mined: the worker knows no agent that keeps its own there")
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

    return handle


def _given_up(settings: Settings, unmined: Sequence[Unmined]) -> set[str]:
    """Those whose job has died since, for a reason that still holds: the folder of each is known by now."""
    if not unmined:
        return set()
    died: dict[str, float] = {}
    with open_ledger(settings) as ledger:
        for dead in ledger.list_jobs(["dead"], kind="reflect.session", most=MAX_DEAD):
            if isinstance(dead.args, dict) and dead.finished_at is not None and dead.error != OUTSIDE:
                session = str(dead.args.get("session"))
                died[session] = max(died.get(session, 0.0), dead.finished_at)
    return {each.session for each in unmined if died.get(each.session, 0.0) > each.last_sign}


def collect_handler(settings: Settings) -> Handler:
    """markers.gc: markers of sessions that were reflected long ago are deleted."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        job.check_owned()
        return {"deleted": collect_old_markers(settings.state.markers, now=time.time(), days=MARKER_DAYS)}

    return handle
