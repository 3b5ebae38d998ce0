"""How far a backfill is: told from the ledger and the cursors, whoever asked for its jobs first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..queue.ledger import Ledger
from .backfill import KIND, MOST_JOBS, SETTLE, BackfillRun, Plan
from .store import CorpusStore


@dataclass(frozen=True)
class Progress:
    """Sessions mined of all, those given up or cancelled, and whether what they said is in the vault."""

    mined: int
    sessions: int
    failed: int
    settled: bool
    paused: bool = False
    """The user has paused the work."""
    cancelled: int = 0
    """Sessions whose jobs the user has cancelled before they were mined."""

    @property
    def is_mined(self) -> bool:
        """None is left, those aside that were given up or cancelled."""
        return self.over >= self.sessions

    @property
    def over(self) -> int:
        """Sessions that nothing more is done about."""
        return self.mined + self.failed + self.cancelled


def progress_of(ledger: Ledger, store: CorpusStore, run: BackfillRun) -> Progress:
    """Where the run is now."""
    live = {job.id for job in ledger.list(["queued", "running"], kind=KIND, most=MOST_JOBS)}
    cursors = store.cursors()  # After the jobs: what ends in between counts as done.
    dead = {job.id for job in ledger.list(["dead"], kind=KIND, most=MOST_JOBS)}
    called_off = {job.id for job in ledger.list(["cancelled"], kind=KIND, most=MOST_JOBS)}
    waiting = failed = cancelled = 0
    for job, transcript in run.jobs.items():
        cursor = cursors.get(transcript.identity, {})
        # Mined with another one: its own job has not been run yet, and will find nothing to do.
        is_ahead = int(cursor.get("size", -1)) >= transcript.size and "failed" not in cursor
        waiting += job in live and not is_ahead
        failed += job in dead
        cancelled += job in called_off and not is_ahead
    # Each transcript's job asks for the settling before it ends, so that none waiting means that it is done.
    is_over = not live & run.jobs.keys() and not ledger.list(["queued", "running"], kind=SETTLE, most=1)
    sessions = len(run.jobs)
    mined = sessions - waiting - failed - cancelled
    return Progress(mined, sessions, failed, is_over, KIND in ledger.paused(), cancelled)


def last_settling(ledger: Ledger) -> Mapping[str, Any]:
    """What the last settling did, as `settling.Settled` counts it; {} when there was none."""
    for job in ledger.list(["done"], kind=SETTLE, most=1):
        result = job.history[-1].get("result") if job.history else None
        return result if isinstance(result, dict) else {}
    return {}


def asked_for(ledger: Ledger, plan: Plan) -> int:
    """How many of the plan's transcripts are in the queue already."""
    wanted = {each.identity for each in plan.to_mine}
    jobs = ledger.list(["queued", "running"], kind=KIND, most=MOST_JOBS)
    return len(wanted & {str(job.args.get("identity")) for job in jobs if isinstance(job.args, dict)})
