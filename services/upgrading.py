"""Change the embedding model without an interruption.

A low-priority child process loads the new model and computes its vectors beside the old ones; the recall service keeps
answering with the old model. When none is missing, one row of index.db changes and the service is told. Missing vectors
are found by a join, so a kill costs one batch.

`python -m memoryvault.services.upgrading` is the child: a request as JSON on stdin, a report as JSON on stdout.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ..index.client import RecallClient, ServiceRefused, ServiceUnavailable
from ..index.drain import drain, embed_with
from ..index.embedder import load_embedder
from ..index.store import IndexStore
from ..runtime.errors import ModelUnavailable
from ..runtime.killpoint import kill_point
from ..runtime.layout import StatePaths
from ..runtime.priority import lower_priority
from ..runtime.settings import Settings, load_settings
from ..tasks.queue import supervisor
from ..tasks.queue.ledger import Ledger
from .indexing import UPGRADE_KIND
from .stores import open_index

BATCH_TEXTS = 16
"""Batch size. A large model embeds a few texts per second, and a kill costs a batch."""
NICENESS = 15
CAN_NOT_LOAD = 3


@dataclass(frozen=True)
class UpgradeReport:
    """Numbers of texts: embedded in this turn, failed, to do (including failed), and all."""

    embedded: int
    failed: int
    remaining: int
    total: int


def embed_beside(state: StatePaths, model: str, seconds: float) -> UpgradeReport:
    """Embed texts that have no vector of the model, in this process, for at most that time.

    Raises ModelUnavailable, IndexUnavailable.
    """
    until = time.monotonic() + seconds
    with IndexStore(Path(state.index_db)) as store:
        if not store.pending_count(model):
            return UpgradeReport(0, 0, 0, 0)
        embedder = load_embedder(model, models_folder=Path(state.models))
        store.model_id(embedder.name, embedder.dimension)
        report = drain(
            store,
            embed_with(embedder),
            model=model,
            batch_texts=BATCH_TEXTS,
            should_stop=lambda: time.monotonic() > until,
            on_progress=lambda done, total: kill_point("mid-child"),
        )
        total = report.remaining + sum(each.embedded for each in store.vector_models() if each.name == model)
    if report.reason is not None:
        raise ModelUnavailable(report.reason)
    return UpgradeReport(report.processed, report.errors, report.remaining, total)


def put_in_force(settings: Settings, model: str) -> None:
    """Make `model` the one in use; the recall service is told if it runs. The previous model's vectors are kept."""
    with open_index(settings) as store:
        store.put_in_force(model)
    # Without an answer: the service reads the same row when it starts, and until then uses its own vectors.
    with suppress(ServiceUnavailable, ServiceRefused), RecallClient(settings.state.recall_socket) as client:
        client.reload()


def ask_for(ledger: Ledger, model: str) -> int | None:
    """Enqueue the change to `model` and cancel changes to other models; return None if this change is already under
    way."""
    if cancel_others(ledger, model):
        return None
    return ledger.enqueue(UPGRADE_KIND, {"model": model}, unique_key=f"{UPGRADE_KIND}:{model}")


def cancel_others(ledger: Ledger, model: str) -> bool:
    """Cancel all changes to another model; return whether one to this model is under way."""
    going_on = False
    for job in ledger.list_jobs(["queued", "running"], kind=UPGRADE_KIND):
        if isinstance(job.args, dict) and job.args.get("model") == model:
            going_on = True
        else:
            ledger.cancel(job.id, f"{model} is wanted now")
    return going_on


def main() -> int:
    """Run the child process."""
    supervisor.watch_parent()
    lower_priority(NICENESS)
    request = json.load(sys.stdin)
    try:
        report = embed_beside(load_settings(os.environ).state, request["model"], request["seconds"])
    except ModelUnavailable as error:
        print(error, file=sys.stderr)
        return CAN_NOT_LOAD
    json.dump(asdict(report), sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
