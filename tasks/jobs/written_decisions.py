"""The worker's part of the review: carrying out decisions that the user wrote into notes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from ...runtime.errors import MemoryVaultError, VaultUnavailable
from ...runtime.settings import Settings
from ...services.decision_property import SETTLED_SECONDS, Reported
from ...services.device import acting_device, acts_here
from ...services.discovery.watchlist import VerdictOutcome, Watchlist
from ...services.ideas.lost_questions import settle_lost_questions
from ...services.indexing import APPLY_KEY
from ...services.reviewing import DecisionOutcome, DecisionProblem, Reviewer
from ..queue.job import Handler, Postpone, RunningJob
from ..queue.kinds import Json
from ..queue.ledger import Ledger

log = logging.getLogger(__name__)

VAULT_PAUSE_SECONDS = 10.0


class DecisionsAtStart:
    """A service of the worker: decisions, and changes cut short, from the time when none ran."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def start(self, ledger: Ledger) -> None:
        """Enqueue review.apply if there is something for it."""
        try:
            reviewer = Reviewer(self._settings)
            if not acts_here(reviewer.store.vault):
                return
            watchlist = Watchlist(self._settings, reviewer.store, reviewer.journal)
            decided = any(True for _ in reviewer.decided_notes()) or any(True for _ in watchlist.decided_notes())
            if reviewer.journal.is_interrupted or decided:
                ledger.enqueue("review.apply", unique_key=APPLY_KEY)
        except MemoryVaultError as error:
            log.warning("decisions in notes wait for the next sweep: %s", error)

    def stop(self) -> None:
        """Nothing runs."""


def _where_told(problem: DecisionProblem) -> str:
    """Where the user finds why: a note says it in itself if it can be written."""
    if problem.reported is Reported.NOW:
        return "it says why itself"
    # No command that decides: what the user wants is not known here.
    return "`memory review` says why when it is decided there"


def apply_handler(settings: Settings) -> Handler:
    """review.apply: decisions that stand in notes."""

    def handle(job: RunningJob) -> Mapping[str, Json]:
        try:
            reviewer = Reviewer(settings)
            ended = reviewer.journal.recover()
            if not acts_here(reviewer.store.vault):
                # Two devices that see one decision would each carry it out, and their files would collide.
                return {"elsewhere": acting_device(reviewer.store.vault) or ""}
            results = reviewer.apply_notes(job.still_owned)
            listed = Watchlist(settings, reviewer.store, reviewer.journal).apply_notes(job.still_owned)
            settled = settle_lost_questions(settings, reviewer.journal, time.time())
        except VaultUnavailable as error:
            raise Postpone(str(error), VAULT_PAUSE_SECONDS) from error
        done = [result for result in results if isinstance(result, DecisionOutcome)]
        problems = [result for result in results if isinstance(result, DecisionProblem)]
        for problem in problems:
            if problem.reported in (Reported.NOW, Reported.NOT):
                # What is wrong would quote here what the user wrote.
                log.warning("%s: its decision could not be carried out; %s", problem.proposal, _where_told(problem))
        decided = len(done) + sum(isinstance(result, VerdictOutcome) for result in listed)
        unclear = len(problems) + len(listed) - (decided - len(done))
        if any(
            problem.reported is Reported.LATER
            for problem in [*problems, *listed]
            if not isinstance(problem, VerdictOutcome)
        ):
            # Nothing changes in the note until it has told what is wrong, so the watcher would not ask again.
            job.enqueue("review.apply", {}, unique_key=APPLY_KEY, delay_seconds=SETTLED_SECONDS)
        if decided or ended or settled:
            job.enqueue("index.reconcile", {}, unique_key="index.reconcile")
        also = {"problems": unclear, "lost questions": settled}
        return {"decided": decided, **{name: count for name, count in also.items() if count}}

    return handle
