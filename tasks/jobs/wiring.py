"""Build the worker: the handler of each kind of job, its services and its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...runtime.settings import Settings
from ..queue.job import Handler, RunningJob
from ..queue.kinds import POLICIES, Json
from ..queue.worker import Service, Worker, WorkerContext
from .corpus_mining import corpus_handler
from .dashboard import dashboard_handler
from .discovering import adapt_handler, discover_handler
from .indexing import drain_handler, reconcile_handler, upgrade_handler, watch_vault, watch_wanted_index
from .reflection import reflect_handler
from .research import enqueue_missing_research, research_handler
from .sweeps import (
    apply_handler,
    collect_handler,
    enqueue_decisions,
    gc_handler,
    import_handler,
    recover_handler,
    skills_handler,
    triage_handler,
)
from .upkeep import rotate_handler

HANDLERS: Mapping[str, Callable[[Settings, RunningJob], Mapping[str, Json] | None]] = {
    "reflect.session": reflect_handler,
    "reflect.corpus": corpus_handler,
    "skills.index": skills_handler,
    "recover.orphans": recover_handler,
    "markers.gc": collect_handler,
    "index.reconcile": reconcile_handler,
    "embed.drain": drain_handler,
    "model.upgrade": upgrade_handler,
    "logs.rotate": rotate_handler,
    "review.apply": apply_handler,
    "memory.import": import_handler,
    "inbox.triage": triage_handler,
    "incubator.gc": gc_handler,
    "dashboard.write": dashboard_handler,
    "research.idea": research_handler,
    "discover.scan": discover_handler,
    "adapt.evaluate": adapt_handler,
}
"""By kind, the function that handles a job by the settings."""


def handlers(settings: Settings) -> Mapping[str, Handler]:
    """Return the handlers of the kinds that this version knows; schedules of other kinds do not run."""
    return {kind: partial(handler, settings) for kind, handler in HANDLERS.items()}


def _changed_times(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of WorkerContext that `MEMORY_TEST_LEASE_SECONDS` etc. shorten for tests of real processes."""
    names = ("poll_seconds", "lease_seconds", "drain_seconds")
    return {name: max(0.05, float(text)) for name in names if (text := env.get(f"MEMORY_TEST_{name.upper()}"))}


def build_worker(settings: Settings, *, watch: bool, is_outdated: Callable[[], bool] = lambda: False) -> Worker:
    """Build the worker of this vault; `watch` follows edits while it runs, `is_outdated` says whether the settings have
    changed."""
    policies = POLICIES
    if settings.reflection.miner != "local":  # A model is slow with a session: it gets one thread, others stay free.
        policies = {**POLICIES, "reflect.session": replace(POLICIES["reflect.session"], concurrency=1)}
    context = WorkerContext(
        state=settings.state,
        workers=settings.queue.workers,
        quiet_seconds=settings.session.quiet_seconds,
        policies=policies,
        enabled=settings.memory.enabled,
        is_outdated=is_outdated,
        **_changed_times(settings.environment),
    )
    able = handlers(settings)
    if watch:  # It runs for long, and an update installed meanwhile must not be half imported.
        from ...index import watcher  # noqa: F401  # Its service would import it later.

    if not settings.memory.enabled:
        return Worker(context, able)
    starts = (enqueue_decisions, watch_wanted_index, enqueue_missing_research)
    services: list[Service] = [partial(start, settings) for start in starts]
    if watch:
        services.append(partial(watch_vault, settings.required_vault_path))
    return Worker(context, able, services)
