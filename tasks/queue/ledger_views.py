"""Queries of commands and pages on the queue."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping

from . import queries
from .database import QueueDatabase
from .records import STATES, Backlog, DueLater, Job, State, WorkerBeat, job_from_row


class LedgerViews(QueueDatabase):
    """Views of the jobs in one queue.db. Every method raises QueueUnavailable, as the database does."""

    def page(
        self, states: Iterable[State] = STATES, *, kind: str | None = None, text: str = "", behind: int = 0, most: int
    ) -> tuple[list[Job], int]:
        """Return jobs in these states, newest first, `most` of them after the first `behind`, and the total number.

        `text` is searched in arguments, kind and error, ignoring case.
        """
        sought = {"states": json.dumps(list(states)), "kind": kind, "text": text.lower()}
        rows = self.read(queries.JOBS_PAGE, {**sought, "behind": behind, "most": most})
        return [job_from_row(row) for row in rows], int(self.read(queries.COUNT_SOUGHT, sought)[0][0])

    def list_without(self, kinds: Iterable[str], text: str, *, behind: int = 0, most: int) -> tuple[list[Job], int]:
        """Return the newest jobs, `most` of them after the first `behind`, without done or cancelled jobs of these
        kinds or with `text` in their arguments, and how many were left out."""
        passed_over = {"kinds": json.dumps(list(kinds)), "text": text}
        rows = self.read(queries.LIST_OTHER_JOBS, {**passed_over, "behind": behind, "most": most})
        return [job_from_row(row) for row in rows], int(self.read(queries.COUNT_PASSED_OVER, passed_over)[0][0])

    def of_session(self, session: str) -> list[Job]:
        """Return the newest twenty jobs that mined this session, newest first."""
        rows = self.read(queries.JOBS_OF_SESSION, {"session": session})
        return [job_from_row(row) for row in rows]

    def live_counts(self) -> list[tuple[str, State, int]]:
        """Return (kind, state, number) of unfinished and dead jobs, without reading finished ones."""
        return [tuple(row) for row in self.read(queries.COUNT_LIVE)]

    def oldest_due(self) -> list[tuple[str, float]]:
        """Return for each kind with a due, waiting job how many seconds the oldest has waited."""
        return [tuple(row) for row in self.read(queries.OLDEST_DUE, {"now": self.now()})]

    def backlog(self) -> Backlog:
        """Return counts of unfinished jobs, without reading finished ones."""
        return Backlog(*self.read(queries.BACKLOG, {"now": self.now()})[0])

    def to_do(self) -> Mapping[str, int]:
        """Return how many jobs of each kind are running, or due and not paused."""
        return dict(self.read(queries.TO_DO, {"now": self.now()}))

    def due_later(self) -> list[DueLater]:
        """Return the jobs that are due later and not paused, in order of time."""
        return [DueLater(*row) for row in self.read(queries.DUE_LATER, {"now": self.now()})]

    def worker(self) -> WorkerBeat | None:
        """Return the last worker's last beat."""
        rows = self.read(queries.WORKER)
        return WorkerBeat(*rows[0]) if rows else None

    def is_worker_silent(self, lease_seconds: float) -> bool:
        """Whether the last worker has missed its beats, of which there are three per lease.

        An old beat alone proves nothing (the machine may have slept, or the clock jumped), so this waits for longer
        than the pause between two beats and checks again. Raises QueueUnavailable.
        """
        first = self.worker()
        if first is None or 0 <= self.now() - first.beat_at <= lease_seconds:
            return False
        time.sleep(lease_seconds / 3 * 1.5)
        second = self.worker()
        return second is not None and second.beat == first.beat
