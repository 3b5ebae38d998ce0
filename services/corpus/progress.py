"""The progress of a backfill, counted from the ledger and the cursors, whichever run enqueued its jobs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...tasks.queue.ledger import Ledger
from .backfill import KIND, MOST_JOBS, SETTLE, BackfillRun, Plan
from .store import CorpusStore


@dataclass(frozen=True)
class Progress:
    """Counts of a run's sessions, and whether what they said is in the vault."""

    mined: int
    sessions: int
    failed: int
    settled: bool
    paused: bool = False
    """The user has paused the work."""
    cancelled: int = 0
    """Sessions whose jobs the user cancelled before they were mined."""

    @property
    def is_mined(self) -> bool:
        """Whether nothing is left to mine."""
        return self.finished >= self.sessions

    @property
    def finished(self) -> int:
        """Sessions that are mined, given up or cancelled."""
        return self.mined + self.failed + self.cancelled


def progress_of(ledger: Ledger, store: CorpusStore, run: BackfillRun) -> Progress:
    """Count how far the run is now."""
    live = {job.id for job in ledger.list(["queued", "running"], kind=KIND, most=MOST_JOBS)}
    cursors = store.cursors()  # After the jobs: what ends in between counts as done.
    dead = {job.id for job in ledger.list(["dead"], kind=KIND, most=MOST_JOBS)}
    cancelled_jobs = {job.id for job in ledger.list(["cancelled"], kind=KIND, most=MOST_JOBS)}
    waiting = failed = cancelled = 0
    for job, transcript in run.jobs.items():
        cursor = cursors.get(transcript.identity, {})
        # Mined with another one: its own job has not been run yet, and will find nothing to do.
        is_ahead = int(cursor.get("size", -1)) >= transcript.size and "failed" not in cursor
        waiting += job in live and not is_ahead
        failed += job in dead
        cancelled += job in cancelled_jobs and not is_ahead
    # Each transcript's job enqueues the settling before it ends: if there is neither, it is done.
    is_settled = not live & run.jobs.keys() and not ledger.list(["queued", "running"], kind=SETTLE, most=1)
    sessions = len(run.jobs)
    mined = sessions - waiting - failed - cancelled
    return Progress(mined, sessions, failed, is_settled, KIND in ledger.paused(), cancelled)


def last_settling(ledger: Ledger) -> Mapping[str, Any]:
    """Load the counts of the last settling, as in `settling.SettleCounts`; {} when there was none."""
    for job in ledger.list(["done"], kind=SETTLE, most=1):
        result = job.history[-1].get("result") if job.history else None
        return result if isinstance(result, dict) else {}
    return {}


def queued_count(ledger: Ledger, plan: Plan) -> int:
    """Count the plan's transcripts that are in the queue already."""
    wanted = {each.identity for each in plan.to_mine}
    jobs = ledger.list(["queued", "running"], kind=KIND, most=MOST_JOBS)
    return len(wanted & {str(job.args.get("identity")) for job in jobs if isinstance(job.args, dict)})
