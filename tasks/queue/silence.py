"""Whether the worker that holds the lock still lives: it beats three times per lease."""

from __future__ import annotations

import time

from .ledger import Ledger


def is_silent(ledger: Ledger, lease_seconds: float) -> bool:
    """Whether the last worker has missed its beats. An old beat alone is no proof (the machine may have slept, the
    clock jumped), so it is also watched for longer than the pause between two. Raises QueueUnavailable.
    """
    first = ledger.worker()
    if first is None or 0 <= ledger.now() - first.beat_at <= lease_seconds:
        return False
    time.sleep(lease_seconds / 3 * 1.5)
    second = ledger.worker()
    return second is not None and second.beat == first.beat
