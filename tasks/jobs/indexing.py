"""The jobs index.reconcile, embed.drain and model.upgrade, and what enqueues them while the worker runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from ...index.client import EMBED_SECONDS
from ...index.database import forget_sound
from ...index.models import wanted_model, why_not_loaded
from ...runtime.errors import QueueUnavailable
from ...runtime.killpoint import kill_point
from ...runtime.layout import INDEX_WANTED
from ...runtime.settings import Settings
from ...services.indexing import APPLY_KEY, MODEL_PATIENCE_SECONDS, UPGRADE_KIND, drain_now, reconcile_now
from ...services.stores import open_index
from ...services.upgrading import CAN_NOT_LOAD, UpgradeReport, put_in_force
from ..queue.job import Dead, Postpone, RunningJob, run_json_child
from ..queue.kinds import Json
from ..queue.ledger import Ledger
from ..queue.worklog import Lasting

log = logging.getLogger(__name__)
NOT_EMBEDDED, NOT_HERE, FAILED = Lasting(log), Lasting(log), Lasting(log)

RECONCILE_KEY = "index.reconcile"
DRAIN_KEY = "embed.drain"
DASHBOARD_SECONDS = 120.0
"""How long after a change of the vault the dashboard note is updated; one update covers all changes until then."""
LOOK_SECONDS = 2.0
UPGRADE_CHILD = "memoryvault.services.upgrading"
SLICE_SECONDS = 240.0
"""How long one child embeds; then the job is postponed, so that it does not hold up other work."""
MAX_FAILED_SHARE = 0.02
"""Most texts that a new model may fail to embed; they are found by their words only. With more it is not used."""
LOAD_SECONDS = 180.0
"""Additional time for a child to load the model and to end its last batch."""


def reconcile_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle index.reconcile. It enqueues embed.drain."""
    full = job.args.get("full") is True
    report = reconcile_now(settings, full=full, should_stop=lambda: not job.still_owned())
    job.enqueue("embed.drain", unique_key=DRAIN_KEY)
    if report.touched:
        # The dashboard may hold the title of a note that is gone: that must go at once.
        delay = 0.0 if report.removed_paths or report.put_away else DASHBOARD_SECONDS
        job.enqueue("dashboard.write", unique_key="dashboard.write", delay_seconds=delay)
    counts: dict[str, Json] = {
        name: value for name, value in asdict(report).items() if isinstance(value, int) and value
    }
    return {**counts, "failed": len(report.failed)} if report.failed else counts


def drain_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle embed.drain. Running it again changes nothing, since a vector is keyed by its text."""
    # The last batch must end before the deadline, at which the attempt would have failed.
    report = drain_now(settings, should_stop=lambda: job.remaining_seconds() <= EMBED_SECONDS or not job.still_owned())
    _follow_settings(job, settings)
    if report.processed and report.remaining > report.errors:
        # The service left, or the time was over; it made progress, so a later run will make more.
        job.enqueue("embed.drain", unique_key=DRAIN_KEY, delay_seconds=MODEL_PATIENCE_SECONDS)
    if report.reason is not None:
        # Working without a model (keywords only) is no failure: the next change tries again.
        NOT_EMBEDDED.is_so(f"not embedded: {report.reason}")
    elif report.processed:
        NOT_EMBEDDED.is_over()
    if report.failed:
        # Not in the job, which outlasts the note. One path: a longer line would be cut, and half a path not forgotten.
        FAILED.is_so(
            f"{len(report.failed)} texts cannot be embedded, one of {report.failed[0][0]}: `memory vault reindex` "
            "names each, and says why"
        )
    else:
        FAILED.is_over()
    return {
        "embedded": report.processed,
        "remaining": report.remaining,
        **({"errors": report.errors} if report.errors else {}),
        **({"reason": report.reason} if report.reason else {}),
    }


def _follow_settings(job: RunningJob, settings: Settings) -> None:
    """Enqueue model.upgrade when the settings name another model than the one in force."""
    with open_index(settings) as index:
        in_force = index.in_force()
    wanted = wanted_model(settings)
    if in_force is None or in_force == wanted:
        NOT_HERE.is_over()
        return
    if (missing := why_not_loaded(wanted, Path(settings.state.models))) is None:
        NOT_HERE.is_over()
        job.enqueue(UPGRADE_KIND, {"model": wanted}, unique_key=f"{UPGRADE_KIND}:{wanted}")
    else:
        NOT_HERE.is_so(f"{in_force} goes on answering: {missing}")


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
        UPGRADE_CHILD,
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


def watch_wanted_index(settings: Settings, ledger: Ledger) -> Callable[[], None]:
    """Make an index as soon as recall found none that it could use: look now and every two seconds, until the returned
    function is called.

    The next opening of the index checks all of it, since use would not show that a word is missing.
    """
    sign, index_db = Path(settings.state.run) / INDEX_WANTED, Path(settings.state.index_db)
    ended = threading.Event()

    def look() -> None:
        if not sign.exists():
            return
        forget_sound(index_db)
        try:
            ledger.enqueue("index.reconcile", unique_key=RECONCILE_KEY)
            sign.unlink(missing_ok=True)
        except (QueueUnavailable, OSError) as error:
            log.warning("the index is wanted, but could not be asked for: %s", error)

    def watch() -> None:
        while not ended.wait(LOOK_SECONDS):
            look()

    def stop() -> None:
        ended.set()
        thread.join(LOOK_SECONDS)

    forget_sound(index_db)
    look()
    thread = threading.Thread(target=watch, name="wanted-index", daemon=True)
    thread.start()
    return stop


def watch_vault(vault: Path, ledger: Ledger) -> Callable[[], None]:
    """Enqueue one walk of the vault, for changes made while no worker ran, then watch until the returned function is
    called: a change becomes an index.reconcile and a review.apply job."""
    from ...index.watcher import VaultWatcher

    def changed() -> None:
        try:
            ledger.enqueue("index.reconcile", unique_key=RECONCILE_KEY)
            ledger.enqueue("review.apply", unique_key=APPLY_KEY)
        except QueueUnavailable as error:
            log.warning("a change in the vault waits for the next walk: %s", error)

    watcher = VaultWatcher(vault, changed, on_error=lambda error: log.warning("watching the vault: %s", error))
    watcher.start()
    changed()
    return watcher.stop
