"""The job session.cost: note what sessions cost."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.settings import Settings
from ...services.costs import note_costs
from ...services.stores import vault_store
from ..queue.job import RunningJob
from ..queue.kinds import Json


def cost_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle session.cost, which updates the entries of sessions that have grown."""
    if not settings.session.cost_entries:
        return {"nothing": "it is switched off"}
    written = note_costs(settings, vault_store(settings))
    if written:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {"written": written}
