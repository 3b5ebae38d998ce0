"""Keep the index in step with the files, and embed passages that have no vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from ..index.client import RecallClient, ServiceRefused, ServiceUnavailable, ensure_service
from ..index.drain import DrainReport, drain
from ..index.models import wanted_model
from ..index.reconcile import ReconcileReport, reconcile
from ..runtime.background import may_start
from ..runtime.settings import Settings
from ..vault.automemory import kind_by_path
from .action_index import write_action_index
from .forgetting import forget_deleted
from .stores import open_index, vault_store

APPLY_KEY = "review.apply"
UPGRADE_KIND = "model.upgrade"
MODEL_PATIENCE_SECONDS = 90.0
"""How long a drain waits for the service to load its model."""


def reconcile_now(
    settings: Settings,
    *,
    full: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> ReconcileReport:
    """Update the index from the files, and compile what rules say about tool calls.

    Raises VaultUnavailable, IndexUnavailable.
    """
    vault = vault_store(settings)

    def walk() -> Iterator[str]:
        for path in vault.walk():
            # If topics are switched off, they must not count at all, not even for how rare a word is.
            if not (settings.memory.disable_auto_memory and kind_by_path(path)):
                yield path

    with open_index(settings) as index:
        report = reconcile(index, vault.vault, walk, force=full, should_stop=should_stop)
        if report.changed or report.removed:
            index.overwrite_removed()
    if deleted := [path for path in report.removed_paths if not vault.exists(path)]:
        forget_deleted(settings, vault, deleted)
    with suppress(OSError):  # The next reconcile writes it.
        write_action_index(settings, vault)
    return report


def drain_now(
    settings: Settings,
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[int, int], None] | None = None,
) -> DrainReport:
    """Embed every passage that has no vector through the recall service, which is started if allowed.

    Without a model nothing is embedded and the report says why; recall continues with keywords.
    """
    with open_index(settings) as index:
        model = index.in_force() or wanted_model(settings)
        pending = index.has_vectors and index.pending_count(model)
        if pending and may_start(settings):
            with suppress(ServiceUnavailable):  # The report says what is missing.
                ensure_service(settings, MODEL_PATIENCE_SECONDS, wait_for_model=True)
        with RecallClient(settings.state.recall_socket) as client:
            if pending:
                with suppress(ServiceUnavailable, ServiceRefused):  # An older service may not know the request.
                    client.reload(MODEL_PATIENCE_SECONDS)
            report = drain(index, client.embed, model=model, should_stop=should_stop, on_progress=on_progress)
        if index.in_force() is None and report.remaining == report.errors and model in index.models():
            index.put_in_force(model)
        return report
