"""Where the parts are put together: which handler runs which kind of job."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ..vault.errors import QueueUnavailable
from ..vault.settings import Settings
from .adapting import adapt_handler
from .corpus import corpus_handler
from .corpus_settling import settle_handler
from .costs import cost_handler
from .dashboard import dashboard_handler
from .discovery import discover_handler
from .importing import import_handler
from .incubator import gc_handler
from .indexing import WantedIndex, WatchedVault, drain_handler, reconcile_handler
from .job import Handler
from .kinds import POLICIES, KindPolicy
from .markers import collect_handler, recover_handler
from .reflection import reflect_handler
from .research import UnresearchedIdeas, research_handler
from .reviewing import DecisionsAtStart, apply_handler
from .shared_queue import build_loop, is_shared
from .sharing.handlers import drop_old_contents, shared_handlers
from .skills import skills_handler
from .triaging import triage_handler
from .upgrading import upgrade_handler
from .upkeep import rotate_handler
from .worker import Loop, Service, Worker, WorkerContext

log = logging.getLogger(__name__)


def handlers(settings: Settings) -> Mapping[str, Handler]:
    """The handler of each kind that this version can do; schedules of other kinds do not run."""
    return {
        "reflect.session": reflect_handler(settings),
        "reflect.corpus": corpus_handler(settings),
        "corpus.settle": settle_handler(settings),
        "skills.index": skills_handler(settings),
        "recover.orphans": recover_handler(settings),
        "markers.gc": collect_handler(settings),
        "index.reconcile": reconcile_handler(settings),
        "embed.drain": drain_handler(settings),
        "model.upgrade": upgrade_handler(settings),
        "logs.rotate": rotate_handler(settings),
        "review.apply": apply_handler(settings),
        "session.cost": cost_handler(settings),
        "memory.import": import_handler(settings),
        "inbox.triage": triage_handler(settings),
        "incubator.gc": gc_handler(settings),
        "dashboard.write": dashboard_handler(settings),
        "research.idea": research_handler(settings),
        "discover.scan": discover_handler(settings),
        "adapt.evaluate": adapt_handler(settings),
    }


def policies_of(settings: Settings) -> Mapping[str, KindPolicy]:
    """The limits of each kind. A model takes its time over a session: it gets one thread, the others stay free."""
    if settings.reflection.miner == "local":
        return POLICIES
    return {**POLICIES, "reflect.session": replace(POLICIES["reflect.session"], concurrency=1)}


def build_worker(settings: Settings, *, watch: bool) -> Worker:
    """The worker of this vault; `watch` follows edits while it runs."""
    context = WorkerContext(
        state=settings.state,
        workers=settings.queue.workers,
        poll_seconds=settings.queue.poll_seconds,
        lease_seconds=settings.queue.lease_seconds,
        drain_seconds=settings.queue.drain_seconds,
        quiet_seconds=settings.session.quiet_seconds,
        metrics_port=settings.queue.metrics_port if watch else 0,
        policies=policies_of(settings),
    )
    if settings.only_works_for_others:
        return Worker(context, {"logs.rotate": rotate_handler(settings)}, (), loops_of(settings))
    services: list[Service] = [DecisionsAtStart(settings), WantedIndex(settings), UnresearchedIdeas(settings)]
    if watch:
        services.append(WatchedVault(settings.required_vault_path))
    return Worker(context, handlers(settings), services, loops_of(settings))


def loops_of(settings: Settings) -> list[Loop]:
    """The loop over the queue that machines share, where there is one and what it takes to reach it."""
    if not is_shared(settings):
        return []
    try:
        return [build_loop(settings, partial(shared_handlers, settings), partial(drop_old_contents, settings))]
    except QueueUnavailable as error:
        log.warning("%s; everything else goes on", error)
        return []
