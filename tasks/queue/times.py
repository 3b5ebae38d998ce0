"""How long the worker holds a job, and the time limits that tests shorten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEASE_SECONDS = 30.0
"""A job whose worker has not beaten for this long starts again."""


def changed_times(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of WorkerContext that `MEMORY_TEST_LEASE_SECONDS` etc. shorten for tests of real processes."""
    names = ("poll_seconds", "lease_seconds", "drain_seconds")
    return {name: max(0.05, float(text)) for name in names if (text := env.get(f"MEMORY_TEST_{name.upper()}"))}
