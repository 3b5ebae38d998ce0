"""memory.import: the host's own memory is taken in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...runtime.errors import VaultUnavailable
from ...runtime.large_change import note_large_change
from ...runtime.settings import Settings
from ...services.importing import HostMemory
from ...services.stores import vault_store
from ..queue.job import Handler, Postpone, RunningJob
from ..queue.kinds import Json

VAULT_PAUSE_SECONDS = 30.0


def import_handler(settings: Settings) -> Handler:
    """memory.import: the host's own notes are followed, if the settings do not forbid it."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        if settings.memory.disable_auto_memory or not settings.memory.import_host_memory:
            return {"nothing": "it is switched off"}
        try:
            results = HostMemory(settings, vault_store(settings)).bring_in()
        except VaultUnavailable as error:
            raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
        counts = Counter(one.result for one in results)
        note_large_change(
            settings.state.markers, counts["removed"], "archived: Claude Code has deleted its own", "import"
        )
        if counts["imported"] or counts["updated"] or counts["removed"]:
            job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
        return {result.replace(" ", "_"): count for result, count in sorted(counts.items())}

    return handle
