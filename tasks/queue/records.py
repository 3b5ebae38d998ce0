"""Records of the ledger: jobs, claims, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...runtime.errors import MemoryVaultError, UsageError
from ...runtime.json_text import parse_json
from ...vault.wording import one_line
from .kinds import Json

State = Literal["queued", "running", "done", "dead", "cancelled"]
STATES: tuple[State, ...] = ("queued", "running", "done", "dead", "cancelled")
Due = Literal["sooner", "later"]
"""Effect of an enqueue on a queued job with the same key: `sooner` may only bring it forward, `later` sets its time
anew (a quiet period that begins again)."""


LEASE_SECONDS = 30.0
"""A job whose worker has not beaten for this long starts again."""
MAX_ERROR_CHARACTERS = 2000


class JobNotFound(MemoryVaultError):
    """There is no job with that id."""


class JobStateRefused(MemoryVaultError):
    """The job's state does not allow the operation."""


@dataclass(frozen=True)
class NewJob:
    """A job to enqueue. `run_at` is in unix seconds and overrides the delay."""

    kind: str
    args: Mapping[str, Json]
    unique_key: str | None = None
    delay_seconds: float = 0.0
    run_at: float | None = None
    due: Due = "sooner"


@dataclass(frozen=True)
class Job:
    """One row of the ledger; times in unix seconds."""

    id: int
    kind: str
    args: Json
    """The parsed object; the raw text if it is not JSON."""
    unique_key: str | None
    priority: int
    state: State
    attempt: int
    run_at: float
    lease_until: float | None
    owner: str | None
    error: str | None
    history: tuple[Mapping[str, Any], ...]
    created_at: float
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True)
class Claim:
    """The right to run one attempt of a job. `owner` and `attempt` fence everything done with it."""

    job_id: int
    kind: str
    args: str
    """JSON text as stored, not validated."""
    unique_key: str | None
    attempt: int
    owner: str


@dataclass(frozen=True)
class Backlog:
    """Counts of unfinished and dead jobs."""

    running: int
    due: int
    """Queued, due, and of a kind that is not paused."""
    delayed: int
    dead: int


@dataclass(frozen=True)
class WorkerBeat:
    """The worker's last beat."""

    pid: int
    beat: int
    beat_at: float


def job_number(text: str) -> int:
    """Return the number of a job that a person has typed. Raises UsageError."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"{text[:40]!r} is not a job's number: `memory jobs list` shows them")
    return int(text)


def job_from_row(row: tuple[Any, ...]) -> Job:
    """Return the job in a row of queries.JOB_COLUMNS."""
    fields = list(row)
    args, history = parsed(row[2]), parsed(row[11])
    fields[2] = row[2] if args is None else args
    fields[11] = tuple(history) if isinstance(history, list) else ()
    return Job(*fields)


def parsed(text: object) -> Json:
    """Return the JSON in a column; None if it is not JSON, as in a damaged file that is not set aside yet."""
    try:
        value: Json = parse_json(text)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None
    return value


def error_text(text: str) -> str:
    """Return `text` for storage: one line, shortened, with `?` for bytes of file names that are not text."""
    return one_line(text).replace("\0", "?").encode("utf-8", "replace").decode("utf-8")[:MAX_ERROR_CHARACTERS]
