"""Describe the sessions that wait to be mined, for a user who has just ended one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..runtime.background import IsWired, what_starts_a_worker
from ..runtime.errors import MemoryVaultError
from ..runtime.process_lock import lock_holder
from ..runtime.settings import Settings
from ..tasks.queue.enqueue import open_ledger
from ..tasks.queue.ledger import Ledger
from ..vault.wording import counted
from .pausing import how_to_go_on, why_nothing_starts

KIND = "reflect.session"
MOST = 1000


@dataclass(frozen=True)
class SessionFigures:
    """Sessions that the hooks have enqueued and that are not mined yet."""

    waiting: int
    first_in_seconds: float | None
    """Seconds until the first is due, 0 if it is; None if none waits."""
    running: int
    """Number of sessions being mined."""
    paused: bool = False
    """Whether the user has paused them: `memory jobs pause reflect.session`."""


def read_sessions(ledger: Ledger) -> SessionFigures:
    """Read them from the ledger. Raises QueueUnavailable."""
    jobs = ledger.list_jobs(["queued", "running"], kind=KIND, most=MOST)
    due = [job.run_at for job in jobs if job.state == "queued"]
    first = max(0.0, min(due) - ledger.now()) if due else None
    return SessionFigures(len(due), first, len(jobs) - len(due), KIND in ledger.paused())


def waiting_sessions_notice(settings: Settings, is_wired: IsWired) -> str:
    """Return `describe_sessions` of this vault's queue; '' if it cannot be read."""
    if not Path(settings.state.queue_db).exists():
        return ""
    try:
        with open_ledger(settings) as ledger:
            return describe_sessions(read_sessions(ledger), settings, is_wired)
    except MemoryVaultError:
        return ""


def describe_sessions(figures: SessionFigures, settings: Settings, is_wired: IsWired) -> str:
    """Return how many sessions wait, until when, and what prevents them, if anything; '' if none waits."""
    parts = [f"{counted(figures.running, 'session is', 'sessions are')} being mined"] if figures.running else []
    if figures.waiting and figures.first_in_seconds is not None:
        when = _when(figures.first_in_seconds)
        if why := why_nothing_starts(settings):
            when = f"{why}: {how_to_go_on(settings)}"
        elif figures.paused:
            when = f"jobs of this kind are paused: `memory jobs resume {KIND}`"
        elif lock_holder(settings.state.worker_lock) is None:
            when = f"no worker runs: {what_starts_a_worker(settings, is_wired)}"
        elif figures.waiting > 1:
            when = f"the first {when}"
        parts.append(f"{counted(figures.waiting, 'session waits', 'sessions wait')} to be mined ({when})")
    return ", ".join(parts)


def _when(seconds: float) -> str:
    if seconds < 1:
        return "now"
    if seconds < 100:
        return f"in about {round(seconds, -1 if seconds > 15 else 0):.0f} s"
    return f"in about {seconds / 60:.0f} min"
