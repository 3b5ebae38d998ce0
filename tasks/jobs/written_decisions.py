"""The job review.apply: carry out decisions that the user wrote into notes."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ...runtime.settings import Settings
from ...services.decision_property import SETTLED_SECONDS, Reported
from ...services.device import acting_device, acts_here
from ...services.discovery.watchlist import VerdictOutcome, Watchlist
from ...services.indexing import APPLY_KEY
from ...services.reviewing import DecisionOutcome, DecisionProblem, Reviewer
from ..queue.job import RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger

log = logging.getLogger(__name__)


def enqueue_decisions(settings: Settings, ledger: Ledger) -> None:
    """Enqueue review.apply at the worker's start, for decisions and an interrupted change from before."""
    ledger.enqueue("review.apply", unique_key=APPLY_KEY)


def _where_told(problem: DecisionProblem) -> str:
    """Say where the user can read the problem: in the note, if it could be written."""
    if problem.reported is Reported.NOW:
        return "it says why itself"
    return "`memory review` says why when it is decided there"


def apply_handler(settings: Settings, job: RunningJob) -> Mapping[str, Json]:
    """Handle review.apply."""
    reviewer = Reviewer(settings)
    ended = reviewer.journal.recover()
    if not acts_here(reviewer.store.vault):
        # Two devices that see one decision would each carry it out, and their files would collide.
        return {"elsewhere": acting_device(reviewer.store.vault) or ""}
    decisions = reviewer.apply_notes(job.still_owned)
    results: list[DecisionOutcome | VerdictOutcome | DecisionProblem] = [
        *decisions,
        *Watchlist(settings, reviewer.store, reviewer.journal).apply_notes(job.still_owned),
    ]
    for problem in decisions:
        if isinstance(problem, DecisionProblem) and problem.reported in (Reported.NOW, Reported.NOT):
            # Not the problem itself: it quotes what the user wrote.
            log.warning("%s: its decision could not be carried out; %s", problem.proposal, _where_told(problem))
    problems = [result for result in results if isinstance(result, DecisionProblem)]
    decided = len(results) - len(problems)
    if any(problem.reported is Reported.LATER for problem in problems):
        # The note does not change until then, so the watcher would not enqueue this job again.
        job.enqueue("review.apply", {}, unique_key=APPLY_KEY, delay_seconds=SETTLED_SECONDS)
    if decided or ended:
        job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
    return {"decided": decided, **({"problems": len(problems)} if problems else {})}
