"""The job model.upgrade: embed all passages with another model, then put it in force."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ...index.models import wanted_model
from ...runtime.killpoint import kill_point
from ...runtime.settings import Settings
from ...services.stores import open_index
from ...services.upgrading import CAN_NOT_LOAD, UpgradeReport, put_in_force
from ..queue.child_job import run_json_child
from ..queue.job import Dead, Postpone, RunningJob
from ..queue.kinds import Json

log = logging.getLogger(__name__)

CHILD = "memoryvault.services.upgrading"
SLICE_SECONDS = 240.0
"""How long one child embeds; then the job is postponed, so that it does not hold up other work."""
MAX_FAILED_SHARE = 0.02
"""Most texts that a new model may fail to embed; they are found by their words only. With more it is not used."""
LOAD_SECONDS = 180.0
"""Additional time for a child to load the model and to end its last batch."""


def upgrade_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle model.upgrade. Its argument `model` is the model's name."""
    model = str(job.args["model"])
    if wanted_model(settings) != model:
        return {"given_up": "the settings name another model by now"}
    with open_index(settings) as store:
        pending, has_vectors, in_force = store.pending_count(model), store.has_vectors, store.in_force()
    if not has_vectors:
        raise Dead("sqlite-vec cannot be loaded here: recall uses keywords only, with any model")
    if in_force == model and pending == 0:
        return {"model": model}
    report = run_json_child(
        job,
        settings,
        CHILD,
        {"model": model, "seconds": SLICE_SECONDS},
        parse=lambda report: UpgradeReport(**report),
        deadline_seconds=SLICE_SECONDS + LOAD_SECONDS,
        verb="embedding",
        dead_status=CAN_NOT_LOAD,
    )
    if report.remaining > report.failed:
        raise Postpone(f"{report.remaining} texts to go", seconds=1.0)
    if report.failed > max(1, MAX_FAILED_SHARE * report.total):
        raise Dead(f"the model could not embed {report.failed} of the vault's texts: the old one stays")
    kill_point("before-effect")
    job.check_owned()
    put_in_force(settings, model)
    log.info("%s answers from now on", model)
    return {"model": model, "embedded": report.embedded, "failed": report.failed}
