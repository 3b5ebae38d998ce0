"""How patient a worker is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class WorkerTimes(NamedTuple):
    """The same for every part that asks, in seconds."""

    poll: float = 1.0
    """Between two looks for jobs without a message."""
    lease: float = 30.0
    """A job whose worker gave no sign for so long starts again."""
    drain: float = 20.0
    """Told to stop, a worker waits so long for running jobs; then it gives them back."""


def worker_times(env: Mapping[str, str]) -> WorkerTimes:
    """The times; `MEMORY_TEST_LEASE_SECONDS` and its like shorten them for tests that kill real processes."""
    found = {name: env.get(f"MEMORY_TEST_{name.upper()}_SECONDS", "") for name in WorkerTimes._fields}
    return WorkerTimes(**{name: max(0.05, float(text)) for name, text in found.items() if text})
