"""A vault whose disk does not answer: what the index holds is shown, in time, and it is said."""

from __future__ import annotations

import os
import threading
import time

import pytest

from memoryvault.index import files
from memoryvault.index.engine import RecallQuery, RecallResult
from memoryvault.tests.index.bed import Bed, slugs


@pytest.fixture
def hanging(bed: Bed) -> Bed:
    """One note is as it was, the file of the other has become a pipe: whoever opens it waits for ever."""
    bed.write("notes/quick.md", "We install with pnpm, on quick disks.", status="active")
    stuck = bed.write("notes/stuck.md", "We install with pnpm, wherever it is stuck.", status="active")
    for number in range(8):
        bed.write(f"notes/n{number}.md", f"Filler about nothing much, number {number}.", status="active")
    bed.index()
    stuck.unlink()
    os.mkfifo(stuck)
    return bed


def free(bed: Bed) -> None:
    """Let go whoever waits at the pipe."""
    with open(bed.vault / "notes" / "stuck.md", "wb", buffering=0):
        time.sleep(0.05)


def test_hits_are_shown_as_they_were_indexed_within_the_budget(hanging: Bed) -> None:
    engine = hanging.engine(dense=False)
    begun = time.monotonic()
    result = engine.recall(RecallQuery("install pnpm stuck"), budget_ms=200)
    took = time.monotonic() - begun
    free(hanging)
    assert set(slugs(result)) == {"quick", "stuck"}
    assert result.degraded == ("no-model", "files-late")
    assert took < 0.3


@pytest.mark.slow
def test_who_asks_without_a_budget_waits_no_longer_than_two_seconds(hanging: Bed) -> None:
    engine = hanging.engine(dense=False)
    results: list[RecallResult] = []
    asking = threading.Thread(target=lambda: results.append(engine.recall(RecallQuery("install pnpm stuck"))))
    asking.start()
    asking.join(8)
    came = list(results)
    free(hanging)
    asking.join()
    assert came, "it would hold a place in the service for ever"
    assert set(slugs(came[0])) == {"quick", "stuck"}
    assert "files-late" in came[0].degraded


def test_a_dead_disk_does_not_take_a_thread_for_every_prompt(hanging: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CAUGHT_AT_MOST", 1)
    engine = hanging.engine(dense=False)
    engine.recall(RecallQuery("install pnpm stuck"), budget_ms=60)
    begun = time.monotonic()
    result = engine.recall(RecallQuery("install pnpm stuck"), budget_ms=5000)
    took = time.monotonic() - begun
    free(hanging)
    assert "files-late" in result.degraded
    assert took < 1
    time.sleep(0.1)
    assert "files-late" not in engine.recall(RecallQuery("filler number 3"), budget_ms=5000).degraded
