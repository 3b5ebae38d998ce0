"""The cron table: which jobs are enqueued at which times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Schedule:
    """A job that is due again and again. Each slot is enqueued once.

    Of slots that passed while no worker ran only the newest is enqueued; none is while an earlier slot's job has not
    ended.
    """

    name: str
    cron: str
    """Five fields. Named hours mean the local wall clock; a schedule for every hour counts in UTC."""
    kind: str
    """Job kind to enqueue."""
    first: Literal["now", "wait"] = "wait"
    """Whether a fresh installation starts with a run or waits for its first slot."""
    doc: str = ""


SCHEDULES: tuple[Schedule, ...] = (
    Schedule("idle-sweep", "*/5 * * * *", "recover.orphans", first="now",
             doc="reflect sessions that have been silent for a while, or whose host died without a word"),
    Schedule("index-reconcile", "7-59/30 * * * *", "index.reconcile", first="now",
             doc="walk the vault for changes that the watcher missed"),
    Schedule("review-sweep", "*/5 * * * *", "review.apply",
             doc="carry out decisions in notes that the watcher missed"),
    Schedule("inbox-triage", "0 4 * * *", "inbox.triage",
             doc="put the inbox in order"),
    Schedule("host-memory", "12 * * * *", "memory.import",
             doc="follow the notes that Claude Code keeps itself"),
    Schedule("dashboard", "37 * * * *", "dashboard.write",
             doc="bring the dashboard note up to date"),
    Schedule("markers-gc", "20 4 * * *", "markers.gc",
             doc="delete markers of sessions reflected long ago"),
    Schedule("logs-rotate", "30 4 * * *", "logs.rotate",
             doc="rotate logs, prune finished jobs"),
    Schedule("skills-index", "40 4 * * 1", "skills.index",
             doc="index the skills that are installed"),
    Schedule("discovery", "23 3 * * 0", "discover.scan",
             doc="look for new patterns in the trusted sources"),
    Schedule("incubator-gc", "0 5 * * 1", "incubator.gc",
             doc="list ideas that nobody came back to"),
)  # fmt: skip
