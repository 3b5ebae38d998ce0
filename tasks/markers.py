"""Jobs about session markers: recover.orphans and markers.gc."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..vault.settings import Settings
from .queue.job import Handler, RunningJob
from .queue.kinds import Json
from .sessions import collect_old_markers, sweep

SECONDS_A_MINUTE = 60.0


def recover_handler(settings: Settings) -> Handler:
    """recover.orphans: a reflect.session job for each session that is silent and not mined to its end."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        result = sweep(
            settings.state.harness,
            now=time.time(),
            idle_seconds=settings.session.idle_minutes * SECONDS_A_MINUTE,
            crash_seconds=settings.session.crash_minutes * SECONDS_A_MINUTE,
        )
        for session in result.to_mine:
            job.enqueue("reflect.session", {"session": session}, unique_key=f"reflect.session:{session}")
        return {
            "to_mine": len(result.to_mine),
            "finished": len(result.finished),
            "dead_pointers": len(result.dead_pointers),
        }

    return handle


def collect_handler(settings: Settings) -> Handler:
    """markers.gc: markers of sessions that were reflected long ago are deleted."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        job.check_owned()
        days = settings.session.marker_days
        return {"deleted": collect_old_markers(settings.state.harness, now=time.time(), days=days)}

    return handle
