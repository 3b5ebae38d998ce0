"""The job memory.import: copy the notes that Claude Code keeps itself into the vault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...runtime.large_change import note_large_change
from ...runtime.settings import Settings
from ...services.importing import HostMemory
from ...services.stores import vault_store
from ..queue.job import RunningJob
from ..queue.kinds import Json


def import_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle memory.import, which does nothing where the settings forbid it."""
    if settings.memory.disable_auto_memory or not settings.memory.import_host_memory:
        return {"nothing": "it is switched off"}
    counts = Counter(one.result for one in HostMemory(settings, vault_store(settings)).bring_in())
    what = "archived: Claude Code has deleted its own"
    if counts["updated"]:
        what = "archived or rewritten, as Claude Code did with its own"
    note_large_change(settings.state.markers, counts["removed"] + counts["updated"], what, "import")
    if counts["imported"] or counts["updated"] or counts["removed"]:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {result.replace(" ", "_"): count for result, count in sorted(counts.items())}
