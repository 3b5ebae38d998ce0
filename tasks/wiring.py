"""Where the parts are put together: which handler runs which kind of job."""

from __future__ import annotations

from collections.abc import Mapping

from ..vault.settings import Settings
from .indexing import WatchedVault, drain_handler, reconcile_handler
from .job import Handler
from .markers import collect_handler, recover_handler
from .reflection import reflect_handler
from .worker import Worker, WorkerContext


def handlers(settings: Settings) -> Mapping[str, Handler]:
    """The handler of each kind that this version can do; schedules of other kinds do not run."""
    return {
        "reflect.session": reflect_handler(settings),
        "recover.orphans": recover_handler(settings),
        "markers.gc": collect_handler(settings),
        "index.reconcile": reconcile_handler(settings),
        "embed.drain": drain_handler(settings),
    }


def build_worker(settings: Settings, *, watch: bool) -> Worker:
    """The worker of this vault; `watch` follows edits while it runs."""
    context = WorkerContext(
        state=settings.state,
        workers=settings.queue.workers,
        poll_seconds=settings.queue.poll_seconds,
        lease_seconds=settings.queue.lease_seconds,
    )
    services = [WatchedVault(settings.required_vault_path)] if watch else []
    return Worker(context, handlers(settings), services)
