"""Build the worker from its handlers, services and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...runtime.settings import Settings
from ..queue.kinds import POLICIES, KindPolicy
from ..queue.times import worker_times
from ..queue.worker import Service, Worker, WorkerContext
from .handlers import handlers
from .indexing import WantedIndex, WatchedVault
from .research import UnresearchedIdeas
from .written_decisions import DecisionsAtStart


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

        for each in able.values():
            each.load()
    if not settings.memory.enabled:
        return Worker(context, able)
    services: list[Service] = [DecisionsAtStart(settings), WantedIndex(settings), UnresearchedIdeas(settings)]
    if watch:
        services.append(WatchedVault(settings.required_vault_path))
    return Worker(context, able, services)
