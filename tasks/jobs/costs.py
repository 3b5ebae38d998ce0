"""session.cost: what the sessions of a week cost is noted."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.errors import VaultUnavailable
from ...runtime.settings import Settings
from ...services.costs import note_costs
from ...services.stores import vault_store
from ..queue.job import Handler, Postpone, RunningJob
from ..queue.kinds import Json

VAULT_PAUSE_SECONDS = 30.0


def cost_handler(settings: Settings) -> Handler:
    """session.cost: the entries of sessions that have grown."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        if not settings.session.cost_entries:
            return {"nothing": "it is switched off"}
        try:
            written = note_costs(settings, vault_store(settings))
        except VaultUnavailable as error:
            raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
        if written:
            job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
        return {"written": written}

    return handle
