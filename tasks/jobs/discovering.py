"""The jobs discover.scan and adapt.evaluate: look for new patterns in the user's sources, and judge one."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from ...runtime.errors import EntryNotFound, UsageError
from ...runtime.killpoint import kill_point_environment
from ...runtime.settings import Settings
from ...services.device import acting_device, acts_here
from ...services.discovery.adapting import Adaptation, choose, is_confirmed, model_for
from ...services.discovery.fetch_child import fetch_in_child
from ...services.discovery.scan import Discovery, NotConfirmed
from ..queue.job import Retry, RunningJob
from ..queue.kinds import Json

log = logging.getLogger(__name__)

KIND = "discover.scan"


def discover_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle discover.scan. Its argument `source` limits it to one source.

    It enqueues adapt.evaluate for the best of the patterns that were found.
    """
    fetch = fetch_in_child(settings, job.run_child, kill_point_environment())
    discovery = Discovery(settings, fetch)
    source = job.args.get("source")
    try:
        discovery.store.require_vault()
        if not acts_here(discovery.store.vault):
            # Two devices would each ask the sources, and their notes would collide.
            return {"elsewhere": acting_device(discovery.store.vault) or ""}
        report = discovery.scan(str(source) if source is not None else None, still_owned=job.still_owned)
    except (NotConfirmed, EntryNotFound):
        return {"nothing": "the sources are not confirmed"}
    except UsageError as error:
        return {"nothing": str(error)}  # The user has removed it from the note since.
    for each in report.sources:
        if each.state == "error":
            log.warning("source %s: %s", each.source.slug, each.detail)
    job.check_owned()
    done = report.count("fetched") + report.count("unchanged")
    if report.again_at is not None and not done:
        if source is not None and job.attempt >= job.policy.attempts:
            # The next slot asks it again; a dead job for every week would help nobody.
            return {"sources": len(report.sources), "errors": report.count("error"), "given_up": 1}
        wait = max(0.0, report.again_at - time.time())
        raise Retry(f"no source could be read: {report.sources[0].detail}", wait)
    later = [each for each in report.sources if each.again_at is not None]
    for each in later:
        # A job of its own, when its host may be asked again: not only at the next slot.
        job.enqueue(
            KIND,
            {"source": each.source.slug},
            unique_key=f"{KIND}:{each.source.slug}",
            delay_seconds=max(0.0, (each.again_at or 0.0) - time.time()),
            due="later",
        )
    chosen = choose(settings, discovery.store)
    for key in chosen:
        job.enqueue("adapt.evaluate", {"pattern": key}, unique_key=f"adapt.evaluate:{key}")
    counts = {
        "sources": done,
        "errors": report.count("error"),
        "asked_again": len(later),
        "new": len(report.new),
        "chosen": len(chosen),
    }
    return {name: value for name, value in counts.items() if value or name == "sources"}


def adapt_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle adapt.evaluate: judge a found pattern, and put it on the watchlist if it is worth a note.

    Its argument `pattern` is the pattern's key.
    """
    fetch = fetch_in_child(settings, job.run_child, kill_point_environment())
    confirmed = is_confirmed(settings)
    completer = model_for(settings) if confirmed else None
    adaptation = Adaptation(settings, fetch=fetch if confirmed else None, completer=completer)
    found = adaptation.found.get(str(job.args["pattern"]))
    if found is None or found.confidence:
        return {"nothing": "it was judged already"}
    adaptation.seed()
    adapted = adaptation.evaluate(found.pattern, job.still_owned)
    job.check_owned()
    if adapted.path is not None:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {
        "pattern": f"{found.pattern.source}/{adapted.slug}",
        "confidence": adapted.judgement.confidence.name if adapted.judgement else "",
        **({"written": adapted.path} if adapted.path else {"left": adapted.detail}),
    }
