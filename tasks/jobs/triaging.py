"""inbox.triage: hints that became sure or old leave the inbox."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.errors import VaultUnavailable
from ...runtime.large_change import note_large_change
from ...runtime.settings import Settings
from ...services.reviewing import Reviewer
from ...services.triaging import run_triage
from ..queue.job import Handler, Postpone, RunningJob
from ..queue.kinds import Json

VAULT_PAUSE_SECONDS = 30.0


def triage_handler(settings: Settings) -> Handler:
    """inbox.triage."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        try:
            results = run_triage(settings, Reviewer(settings), still_owned=job.still_owned)
        except VaultUnavailable as error:
            raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
        counts: dict[str, Json] = {}
        for result in results:
            name = result.result.split(":", 1)[0]
            counts[name] = int(str(counts.get(name, 0))) + 1
        note_large_change(settings.state.markers, len(results), "put elsewhere from the inbox", "triage")
        if results:
            job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
        return counts

    return handle
