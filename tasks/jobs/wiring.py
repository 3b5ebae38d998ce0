"""Build the worker: the handler of each kind of job, its services and its limits."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ...runtime.settings import Settings
from ..queue.job import Handler, RunningJob
from ..queue.kinds import POLICIES, Json, KindPolicy
from ..queue.times import worker_times
from ..queue.worker import Service, Worker, WorkerContext
from .indexing import watch_vault, watch_wanted_index
from .research import enqueue_missing_research
from .written_decisions import enqueue_decisions

HANDLERS: Mapping[str, tuple[str, str]] = {
    "reflect.session": ("reflection", "reflect_handler"),
    "reflect.corpus": ("corpus_mining", "corpus_handler"),
    "skills.index": ("skills", "skills_handler"),
    "recover.orphans": ("markers", "recover_handler"),
    "markers.gc": ("markers", "collect_handler"),
    "index.reconcile": ("indexing", "reconcile_handler"),
    "embed.drain": ("indexing", "drain_handler"),
    "model.upgrade": ("upgrading", "upgrade_handler"),
    "logs.rotate": ("upkeep", "rotate_handler"),
    "review.apply": ("written_decisions", "apply_handler"),
    "memory.import": ("sweeps", "import_handler"),
    "inbox.triage": ("sweeps", "triage_handler"),
    "incubator.gc": ("sweeps", "gc_handler"),
    "dashboard.write": ("dashboard", "dashboard_handler"),
    "research.idea": ("research", "research_handler"),
    "discover.scan": ("discovering", "discover_handler"),
    "adapt.evaluate": ("discovering", "adapt_handler"),
}
"""By kind: the module, and the function in it that handles a job by the settings."""


def load_handler(kind: str) -> Callable[[Settings, RunningJob], Mapping[str, Json] | None]:
    """Import the handler of a kind."""
    module, name = HANDLERS[kind]
    handler: Callable[[Settings, RunningJob], Mapping[str, Json] | None]
    handler = getattr(importlib.import_module(f".{module}", __package__), name)
    return handler


def handlers(settings: Settings) -> Mapping[str, Handler]:
    """Return the handlers of the kinds that this version knows; schedules of other kinds do not run.

    Each is imported with its first job, because most runs have jobs of few kinds.
    """

    def handle(kind: str, job: RunningJob) -> Mapping[str, Json] | None:
        return load_handler(kind)(settings, job)

    return {kind: partial(handle, kind) for kind in HANDLERS}


def policies_of(settings: Settings) -> Mapping[str, KindPolicy]:
    """Return the limits of each kind. A model is slow with a session, so it gets one thread and the others stay
    free."""
    if settings.reflection.miner == "local":
        return POLICIES
    return {**POLICIES, "reflect.session": replace(POLICIES["reflect.session"], concurrency=1)}


def build_worker(settings: Settings, *, watch: bool, is_outdated: Callable[[], bool] = lambda: False) -> Worker:
    """Build the worker of this vault; `watch` follows edits while it runs, `is_outdated` says whether the settings have
    changed."""
    times = worker_times(settings.environment)
    context = WorkerContext(
        state=settings.state,
        workers=settings.queue.workers,
        poll_seconds=times.poll,
        lease_seconds=times.lease,
        drain_seconds=times.drain,
        quiet_seconds=settings.session.quiet_seconds,
        policies=policies_of(settings),
        enabled=settings.memory.enabled,
        is_outdated=is_outdated,
    )
    able = handlers(settings)
    if watch:  # It runs for long, and an update installed meanwhile must not be half imported.
        from ...index import watcher  # noqa: F401  # Its service would import it later.

        for kind in able:
            load_handler(kind)
    if not settings.memory.enabled:
        return Worker(context, able)
    starts = (enqueue_decisions, watch_wanted_index, enqueue_missing_research)
    services: list[Service] = [partial(start, settings) for start in starts]
    if watch:
        services.append(partial(watch_vault, settings.required_vault_path))
    return Worker(context, able, services)
