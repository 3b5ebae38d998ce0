"""Workers and recall services that come and go, as on a machine that is switched off every evening."""

from __future__ import annotations

import signal
import stat
import time
from pathlib import Path

from ...tasks.jobs.upkeep import STALE_TEMPORARY_SECONDS, clean_temporaries
from .bed import Bed

RESTARTS = 50
KILLED, LONG = 4, 3
"""Every fourth pair is killed, every third has time to settle; the others leave while they start."""
SETTLE_SECONDS = 120.0


def come_and_go(bed: Bed, restarts: int) -> list[str]:
    """Start and end both so often while sessions come in, then let a worker finish; what is left lying about."""
    for number in range(restarts):
        worker, service = bed.worker(), bed.service()
        bed.new_session()
        bed.wait(worker, 0.2 if number % LONG else 1.5)
        if number % KILLED == KILLED - 1:
            bed.kill(worker, signal.SIGKILL, "worker")
            bed.kill(service, signal.SIGKILL, "service")
        bed.stop(worker)
        bed.stop(service)
    worker, service = bed.worker(None, "--until-idle"), bed.service()
    left = [] if bed.wait(worker, SETTLE_SECONDS) == 0 else ["jobs that have not ended"]
    bed.stop(service)
    return [*left, *bed.tally.unexpected, *_processes(bed), *_files(bed)]


def _processes(bed: Bed) -> list[str]:
    return [f"process {pid}" for pid in bed.strays()]


def _files(bed: Bed) -> list[str]:
    """Sockets, spool files, and the temporary files that the daily clean-up does not delete.

    A killed writer leaves a temporary file, which the clean-up deletes once it is old.
    """
    clean_temporaries(bed.state, time.time() + STALE_TEMPORARY_SECONDS + 1)
    root = Path(bed.state.root)
    names = {str(path.relative_to(root)): path for path in root.rglob("*") if not path.is_dir()}
    found = [
        name
        for name, path in names.items()
        if stat.S_ISSOCK(path.stat().st_mode)
        or ".tmp" in name
        or name.startswith("spool/")
    ]  # fmt: skip
    found += [str(path) for path in Path(bed.state.sockets).glob("*.sock")]
    found += [str(path) for path in bed.sandbox.vault.rglob(".*") if path.suffix == ".tmp"]
    return sorted(set(found))
