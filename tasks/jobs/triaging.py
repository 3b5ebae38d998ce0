"""The job inbox.triage: promote, merge or archive notes of the inbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...runtime.large_change import note_large_change
from ...runtime.settings import Settings
from ...services.reviewing import Reviewer
from ...services.triaging import run_triage
from ..queue.job import RunningJob
from ..queue.kinds import Json


def triage_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle inbox.triage."""
    results = run_triage(settings, Reviewer(settings), still_owned=job.still_owned)
    note_large_change(settings.state.markers, len(results), "put elsewhere from the inbox", "triage")
    if results:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return dict(Counter(result.result.split(":", 1)[0] for result in results))
