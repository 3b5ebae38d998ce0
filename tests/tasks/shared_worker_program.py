"""A worker's loop over the shared ledger: `python -m … CONNINFO NAME EFFECTS SECONDS`.

Claims, has an effect (a line in the file), completes; until nothing has been there for so many seconds.
"""

from __future__ import annotations

import itertools
import os
import sys
import time

from memoryvault.tasks.postgres.ledger import PostgresLedger
from memoryvault.tests.tasks.support import POLICIES

LEASE_SECONDS = 30.0


def main(conninfo: str, name: str, effects: str, seconds: float) -> None:
    numbers = itertools.count()
    idle_since = time.monotonic()
    file = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with PostgresLedger(conninfo, policies=POLICIES) as ledger:
        while time.monotonic() - idle_since < seconds:
            taken = ledger.take_doorbell(lambda: f"{name}-{next(numbers)}", LEASE_SECONDS)
            if taken is None:
                ledger.ring_due()
                time.sleep(0.01)
                continue
            idle_since = time.monotonic()
            claim = taken[1]
            if ledger.still_owned(claim):
                os.write(file, f"{claim.job_id} {claim.attempt}\n".encode())
            ledger.complete(claim)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
