"""What commands and pages ask of the queue."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping

from . import queries
from .database import QueueDatabase
from .records import STATES, Backlog, DueLater, Job, State, WorkerBeat, job_from_row

__all__ = ["LedgerViews"]


class LedgerViews(QueueDatabase):
    """Views of the jobs in one queue.db. Every method raises QueueUnavailable, as the database does."""

    def page(
        self, states: Iterable[State] = STATES, *, kind: str | None = None, text: str = "", behind: int = 0, most: int
    ) -> tuple[list[Job], int]:
        """Jobs of these states, newest first, `most` of them behind the first `behind`; and how many there are in all.

        `text` is looked for in arguments, kind and error, whatever its case.
        """
        sought = {"states": json.dumps(list(states)), "kind": kind, "text": text.lower()}
        rows = self.read(queries.JOBS_PAGE, {**sought, "behind": behind, "most": most})
        return [job_from_row(row) for row in rows], int(self.read(queries.COUNT_SOUGHT, sought)[0][0])

    def list_without(self, kinds: Iterable[str], text: str, *, most: int) -> tuple[list[Job], int]:
        """The newest jobs but for those that are done or cancelled and of these kinds, or with `text` in their
        arguments; and how many those are."""
        passed_over = {"kinds": json.dumps(list(kinds)), "text": text}
        rows = self.read(queries.LIST_OTHER_JOBS, {**passed_over, "most": most})
        return [job_from_row(row) for row in rows], int(self.read(queries.COUNT_PASSED_OVER, passed_over)[0][0])

    def of_session(self, session: str, *, most: int = 20) -> list[Job]:
        """The jobs that mined this session, newest first."""
        rows = self.read(queries.JOBS_OF_SESSION, {"session": session, "most": most})
        return [job_from_row(row) for row in rows]

    def live_counts(self) -> list[tuple[str, State, int]]:
        """Kind, state and how many, of what has not ended and of the dead; does not touch finished jobs."""
        return [tuple(row) for row in self.read(queries.COUNT_LIVE)]

    def oldest_due(self) -> list[tuple[str, float]]:
        """For each kind with a job that is due and waits: for how many seconds the oldest has."""
        return [tuple(row) for row in self.read(queries.OLDEST_DUE, {"now": self.now()})]

    def backlog(self) -> Backlog:
        """What is left to do; does not touch finished jobs."""
        return Backlog(*self.read(queries.BACKLOG, {"now": self.now()})[0])

    def to_do(self) -> Mapping[str, int]:
        """How many jobs of each kind run, or are due and not paused."""
        return dict(self.read(queries.TO_DO, {"now": self.now()}))

    def due_later(self) -> list[DueLater]:
        """What waits for its time and is not paused, in the order of that."""
        return [DueLater(*row) for row in self.read(queries.DUE_LATER, {"now": self.now()})]

    def worker(self) -> WorkerBeat | None:
        """What the last worker said of itself."""
        rows = self.read(queries.WORKER)
        return WorkerBeat(*rows[0]) if rows else None

    def is_worker_silent(self, lease_seconds: float) -> bool:
        """Whether the last worker has missed its beats, of which there are three per lease.

        An old beat alone is no proof (the machine may have slept, the clock jumped), so this waits for longer than the
        pause between two beats and looks again. Raises QueueUnavailable.
        """
        first = self.worker()
        if first is None or 0 <= self.now() - first.beat_at <= lease_seconds:
            return False
        time.sleep(lease_seconds / 3 * 1.5)
        second = self.worker()
        return second is not None and second.beat == first.beat
