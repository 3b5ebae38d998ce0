"""The jobs discover.scan and adapt.evaluate: look for new patterns in the user's sources, and judge one."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from ...runtime.errors import EntryNotFound
from ...runtime.settings import Settings
from ...services.device import acting_device, acts_here
from ...services.discovery.adapting import PATTERNS_PER_RUN, Adaptation, is_confirmed, model_for
from ...services.discovery.fetch_child import fetch_in_child
from ...services.discovery.scan import Discovery, NotConfirmed
from ..queue.job import Retry, RunningJob
from ..queue.kinds import Json

log = logging.getLogger(__name__)


def discover_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle discover.scan, and enqueue adapt.evaluate for the best of the patterns that were found.

    While a host was left alone the scan is repeated when it may be asked.
    """
    fetch = fetch_in_child(settings, job.run_child)
    discovery = Discovery(settings, fetch)
    try:
        discovery.store.require_vault()
        if not acts_here(discovery.store.vault):
            # Two devices would each ask the sources, and their notes would collide.
            return {"elsewhere": acting_device(discovery.store.vault) or ""}
        report = discovery.scan(still_owned=job.still_owned)
    except (NotConfirmed, EntryNotFound):
        return {"nothing": "the sources are not confirmed"}
    for each in report.sources:
        if each.state == "error":
            log.warning("source %s: %s", each.source.slug, each.detail)
    job.check_owned()
    chosen = Adaptation(settings, discovery.store, fetch=None).ranked()[:PATTERNS_PER_RUN]
    for pattern in chosen:
        job.enqueue("adapt.evaluate", {"pattern": pattern.key}, unique_key=f"adapt.evaluate:{pattern.key}")
    # After the last attempt the next slot asks: a dead job for every week would help nobody.
    if report.again_at is not None and job.attempt < job.policy.attempts:
        raise Retry("a source could not be read", max(0.0, report.again_at - time.time()))
    counts = {
        "sources": report.count("fetched"),
        "errors": report.count("error") + report.count("waiting"),
        "new": len(report.new),
        "chosen": len(chosen),
    }
    return {name: value for name, value in counts.items() if value or name == "sources"}


def adapt_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle adapt.evaluate: judge a found pattern, and put it on the watchlist if it is worth a note.

    Its argument `pattern` is the pattern's key.
    """
    fetch = fetch_in_child(settings, job.run_child)
    confirmed = is_confirmed(settings)
    completer = model_for(settings) if confirmed else None
    adaptation = Adaptation(settings, fetch=fetch if confirmed else None, completer=completer)
    waiting = {pattern.key: pattern for pattern in adaptation.found.waiting()}
    pattern = waiting.get(str(job.args["pattern"]))
    if pattern is None:
        return {"nothing": "it was judged already"}
    adaptation.seed()
    adapted = adaptation.evaluate(pattern, job.still_owned)
    job.check_owned()
    if adapted.path is not None:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {
        "pattern": f"{pattern.source}/{adapted.slug}",
        "confidence": adapted.judgement.confidence.name if adapted.judgement else "",
        **({"written": adapted.path} if adapted.path else {"left": adapted.detail}),
    }
