"""The job skills.index: keep one entry for each skill on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ...pipelines.skills import Skill
from ...runtime.layout import home_folder
from ...runtime.settings import Settings
from ...services.skills import Scan, all_roots, index_skills
from ...services.stores import vault_store
from ..queue.child_job import run_json_child
from ..queue.job import RunningJob
from ..queue.kinds import Json

CHILD = "memoryvault.services.skills"
SCAN_SECONDS = 240.0
MAX_SCAN_BYTES = 64 << 20


def skills_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle skills.index."""
    store = vault_store(settings)
    store.require_vault()
    found = _scan_in_child(settings, job)
    with store.lock():
        result = index_skills(found, store, job.check_owned)
    if result.changed:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {**asdict(replace(result, warnings=())), "warnings": len(result.warnings)}


def _scan_in_child(settings: Settings, job: RunningJob) -> Scan:
    roots = [{**asdict(root), "path": str(root.path)} for root in all_roots(settings)]
    request = {"roots": roots, "home": home_folder(settings.environment)}
    return run_json_child(
        job,
        settings,
        CHILD,
        request,
        parse=scan_from_json,
        deadline_seconds=SCAN_SECONDS,
        verb="reading the skills",
        max_stdout_bytes=MAX_SCAN_BYTES,
    )


def scan_from_json(value: Mapping[str, Any]) -> Scan:
    """Restore the scan that the child printed. Raises KeyError or TypeError for anything else."""
    return Scan(
        skills=tuple(Skill(**skill) for skill in value["skills"]),
        unreadable=tuple(value["unreadable"]),
        uncertain=tuple(value["uncertain"]),
        warnings=tuple(value["warnings"]),
    )
