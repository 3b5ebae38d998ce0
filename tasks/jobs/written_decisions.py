"""The job review.apply: carry out decisions that the user wrote into notes."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ...runtime.errors import MemoryVaultError
from ...runtime.settings import Settings
from ...services.decision_property import SETTLED_SECONDS
from ...services.device import acting_device, acts_here
from ...services.discovery.watchlist import VerdictOutcome, Watchlist
from ...services.indexing import APPLY_KEY
from ...services.reviewing import DecisionOutcome, DecisionProblem, Reviewer
from ..queue.job import RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger

log = logging.getLogger(__name__)


def enqueue_decisions(settings: Settings, ledger: Ledger) -> None:
    """Enqueue review.apply, at the worker's start, if there is a decision or an interrupted change from before."""
    try:
        reviewer = Reviewer(settings)
        if not acts_here(reviewer.store.vault):
            return
        watchlist = Watchlist(settings, reviewer.store, reviewer.journal)
        decided = any(True for _ in reviewer.decided_notes()) or any(True for _ in watchlist.decided_notes())
        if reviewer.journal.is_interrupted or decided:
            ledger.enqueue("review.apply", unique_key=APPLY_KEY)
    except MemoryVaultError as error:
        log.warning("decisions in notes wait for the next sweep: %s", error)


def apply_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle review.apply."""
    reviewer = Reviewer(settings)
    ended = reviewer.journal.recover()
    if not acts_here(reviewer.store.vault):
        # Two devices that see one decision would each carry it out, and their files would collide.
        return {"elsewhere": acting_device(reviewer.store.vault) or ""}
    results: list[DecisionOutcome | VerdictOutcome | DecisionProblem] = [
        *reviewer.apply_notes(job.still_owned),
        *Watchlist(settings, reviewer.store, reviewer.journal).apply_notes(job.still_owned),
    ]
    problems = [result for result in results if isinstance(result, DecisionProblem)]
    decided = len(results) - len(problems)
    if any(problem.is_unsettled for problem in problems):
        # The note does not change until then, so the watcher would not enqueue this job again.
        job.enqueue("review.apply", {}, unique_key=APPLY_KEY, delay_seconds=SETTLED_SECONDS)
    if decided or ended:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {"decided": decided, **({"problems": len(problems)} if problems else {})}
