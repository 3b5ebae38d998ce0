"""The job review.apply: carry out decisions that the user wrote into notes."""

from __future__ import annotations

from collections.abc import Mapping

from ...runtime.settings import Settings
from ...services.decision_property import SETTLED_SECONDS, DecisionProblem
from ...services.device import acting_device, acts_here
from ...services.discovery.watchlist import Watchlist
from ...services.indexing import APPLY_KEY
from ...services.reviewing import Reviewer
from ..queue.job import RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger


def enqueue_decisions(settings: Settings, ledger: Ledger) -> None:
    """Enqueue review.apply at the worker's start, for decisions and an interrupted change from before."""
    ledger.enqueue("review.apply", unique_key=APPLY_KEY)


def apply_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle review.apply."""
    reviewer = Reviewer(settings)
    ended = reviewer.journal.recover()
    if not acts_here(reviewer.store.vault):
        # Two devices that see one decision would each carry it out, and their files would collide.
        return {"elsewhere": acting_device(reviewer.store.vault) or ""}
    results = [
        *reviewer.apply_notes(job.still_owned),
        *Watchlist(settings, reviewer.store, reviewer.journal).apply_notes(job.still_owned),
    ]
    problems = [result for result in results if isinstance(result, DecisionProblem)]
    decided = len(results) - len(problems)
    if any(problem.may_be_typed for problem in problems):
        # The note does not change until then, so the watcher would not enqueue this job again.
        job.enqueue("review.apply", {}, unique_key=APPLY_KEY, delay_seconds=SETTLED_SECONDS)
    if decided or ended:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {"decided": decided, **({"problems": len(problems)} if problems else {})}
