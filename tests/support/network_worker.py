"""A worker behind a network that fails: `python -m … CONNINFO NAME LEASE_SECONDS WORK_SECONDS`.

Claims, works, and in one transaction records its effect (a row in `effect`) and the end of the attempt, as the
handlers of shared jobs do. Whatever the network does, it goes on; a killed one is started anew by the test.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable

from memoryvault.runtime.errors import QueueUnavailable
from memoryvault.tasks.postgres import connection
from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tasks.queue.ledger import Claim
from memoryvault.tests.tasks.support import POLICIES

EFFECTS = "CREATE TABLE IF NOT EXISTS effect (job bigint NOT NULL, attempt int NOT NULL, worker text NOT NULL)"
RETRY_SECONDS = 0.1


class Dropped(Exception):
    """The claim no longer holds: the transaction with the effect must not be committed."""


def patience(answer_seconds: float, stalled_seconds: int) -> None:
    """Shorten in this process what takes half a minute in use."""
    connection.Impatient.answer_seconds = answer_seconds
    connection.STALLED_SECONDS = stalled_seconds
    connection.CONNECT_SECONDS = 2


def finish(
    ledger: PostgresLedger, claim: Claim, name: str, before_completion: Callable[[], None] = lambda: None
) -> bool:
    """The effect and its record, both or none."""
    try:
        with ledger.transaction() as conn:
            conn.execute("INSERT INTO effect VALUES (%s, %s, %s)", (claim.job_id, claim.attempt, name))
            before_completion()
            if not ledger.complete(claim):
                raise Dropped
    except Dropped:
        return False
    return True


def main(conninfo: str, name: str, lease_seconds: float, work_seconds: float) -> None:
    patience(1.0, 1)
    numbers = itertools.count()
    while True:
        with contextlib.suppress(QueueUnavailable), PostgresLedger(conninfo, policies=POLICIES) as ledger:
            serve(ledger, name, lease_seconds, work_seconds, numbers)
        time.sleep(RETRY_SECONDS)


def serve(
    ledger: PostgresLedger, name: str, lease_seconds: float, work_seconds: float, numbers: itertools.count[int]
) -> None:
    """Work until the queue is out of reach."""
    while True:
        ledger.requeue_expired()
        ledger.forget_lost_doorbells(0.5)
        ledger.ring_due()
        taken = ledger.take_doorbell(lambda: f"{name}-{os.getpid()}-{next(numbers)}", lease_seconds)
        if taken is None:
            time.sleep(0.02)
            continue
        claim = taken[1]
        heart = threading.Thread(target=beat, args=(ledger, claim, lease_seconds, work_seconds))
        heart.start()
        time.sleep(work_seconds)
        heart.join()
        while True:  # The answer may be lost, the commit not: ask again, the fence tells.
            try:
                finish(ledger, claim, name)
                break
            except QueueUnavailable:
                time.sleep(RETRY_SECONDS)


def beat(ledger: PostgresLedger, claim: Claim, lease_seconds: float, work_seconds: float) -> None:
    until = time.monotonic() + work_seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, lease_seconds / 3))
        with contextlib.suppress(QueueUnavailable):
            ledger.heartbeat([claim], lease_seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
