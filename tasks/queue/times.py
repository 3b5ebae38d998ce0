"""The worker's time limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class WorkerTimes(NamedTuple):
    """The time limits in seconds, the same for every part of the worker."""

    poll: float = 1.0
    """Between two checks for due jobs and for the spool."""
    lease: float = 30.0
    """A job whose worker has not beaten for this long starts again."""
    drain: float = 20.0
    """How long a worker that is told to stop waits for running jobs before it releases them."""


def worker_times(env: Mapping[str, str]) -> WorkerTimes:
    """Return the limits; `MEMORY_TEST_LEASE_SECONDS` etc. shorten them for tests that kill real processes."""
    found = {name: env.get(f"MEMORY_TEST_{name.upper()}_SECONDS", "") for name in WorkerTimes._fields}
    return WorkerTimes(**{name: max(0.05, float(text)) for name, text in found.items() if text})
