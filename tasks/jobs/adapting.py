"""The job adapt.evaluate: judge one found pattern and put it on the watchlist if it is worth a note."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.killpoint import kill_point_environment
from ...runtime.settings import Settings
from ...services.discovery.adapting import Adaptation, is_confirmed, model_for
from ...services.discovery.fetch_child import fetch_in_child
from ..queue.job import RunningJob
from ..queue.kinds import Json


def adapt_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle adapt.evaluate. Its argument `pattern` is the pattern's key."""
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
