"""Run all jobs to their end without disturbance, then count jobs, memories, index entries and processes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from ...index.store import IndexStore
from ...vault.entry import parse_entry
from ...vault.marker import list_markers, marker_path, read_marker
from .bed import Bed

SETTLE_SECONDS = 180.0


@dataclass(frozen=True)
class Verdict:
    """Result of a run."""

    jobs: int
    """Jobs in all queue.db files of the run."""
    memories: int
    """Rules that were stated, each of which must be one entry."""
    lost: int
    doubled: int
    orphans: int
    replayed: int
    """Jobs that were killed in all their attempts, kept as dead, and retried."""
    details: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, doubled or left running."""
        return not (self.lost or self.doubled or self.orphans)


def settle(bed: Bed) -> int:
    """Run all jobs that are left, and retry dead ones; return the number of dead ones."""
    bed.stop_all()
    service = bed.service()
    replayed, until = 0, time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        worker = bed.worker(None, "--until-idle", "--timeout", "60")
        bed.wait(worker, 90.0)
        with bed.ledger() as ledger:
            dead = ledger.list_jobs(["dead"], most=1000)
            for job in dead:
                ledger.retry(job.id)
            replayed += len(dead)
            if not dead and not ledger.list_jobs(["queued", "running"], most=1):
                break
            ledger.advance(3600.0)
            with ledger.transaction() as conn:  # Do not wait for pauses after failures.
                conn.execute("UPDATE job SET run_at = 0 WHERE state = 'queued'")
    bed.stop(service)
    return replayed


def judge(bed: Bed) -> Verdict:
    """Run the remaining jobs, then count."""
    replayed = settle(bed)
    details: list[str] = []
    counts = bed.count_jobs()
    lost = counts["queued"] + counts["running"]
    if lost:
        details.append(f"{lost} jobs have not ended")
    missing, doubled = _memories(bed, details)
    lost += missing + _unmined(bed, details)
    doubled += _index(bed, details)
    bed.stop_all()
    strays = bed.strays()
    if strays:
        details.append(f"processes left: {strays}")
    return Verdict(
        jobs=bed.tally.jobs,
        memories=sum(len(session.rules) for session in bed.sessions),
        lost=lost,
        doubled=doubled,
        orphans=bed.tally.orphans + len(strays),
        replayed=replayed,
        details=tuple(details),
    )


def _memories(bed: Bed, details: list[str]) -> tuple[int, int]:
    """Return the numbers of rules without an entry, and with several entries or occurrences."""
    entries = []
    for path in sorted(bed.sandbox.vault.rglob("*.md")):
        entries.append(parse_entry(str(path.relative_to(bed.sandbox.vault)), path.read_bytes()))
    missing = doubled = 0
    for session in bed.sessions:
        for rule in session.rules:
            found = [entry for entry in entries if rule in entry.title.lower() or rule in entry.slug]
            if not found:
                missing += 1
                details.append(f"no entry for {rule} of session {session.id}")
            elif len(found) > 1 or found[0].occurrences != 1 or len(found[0].sources) != 1:
                doubled += 1
                details.append(f"{rule}: {[(e.path, e.occurrences, len(e.sources)) for e in found]}")
    return missing, doubled


def _unmined(bed: Bed, details: list[str]) -> int:
    """Return the number of open markers that point before the end of their transcript."""
    found = 0
    for session in list_markers(bed.state.markers):
        marker = read_marker(marker_path(bed.state.markers, session))
        if marker is not None and os.path.getsize(marker.transcript) > marker.offset:
            found += 1
            details.append(f"session {session} is not mined to its end")
    return found


def _index(bed: Bed, details: list[str]) -> int:
    """Return the number of entries that are in the index twice or not at all, and of texts without a vector."""
    files = {str(path.relative_to(bed.sandbox.vault)) for path in bed.sandbox.vault.rglob("*.md")}
    with IndexStore(Path(bed.state.index_db)) as store:
        indexed, pending = store.files(), store.pending_count("fake")
        problems = store.integrity_problems()
    differ = sorted(files ^ set(indexed))
    wrong = len(differ) + pending + len(problems)
    if wrong:
        named = ", ".join(f"{path} ({'not indexed' if path in files else 'gone'})" for path in differ[:5])
        details.append(f"index: {len(differ)} files differ ({named}), {pending} texts without vector, {problems}")
    return wrong
