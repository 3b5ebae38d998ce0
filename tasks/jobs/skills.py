"""The job skills.index: keep one entry for each skill on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from ...runtime.layout import home_folder
from ...runtime.settings import Settings
from ...services.skills import all_roots, index_skills, scan
from ...services.stores import vault_store
from ..queue.job import RunningJob
from ..queue.kinds import Json


def skills_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle skills.index."""
    store = vault_store(settings)
    store.require_vault()
    found = scan(all_roots(settings), home_folder(settings.environment))
    with store.lock():
        result = index_skills(found, store, job.check_owned)
    if result.changed:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {**asdict(replace(result, warnings=())), "warnings": len(result.warnings)}
