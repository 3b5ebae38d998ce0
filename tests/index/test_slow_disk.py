"""A vault whose disk does not answer: what the index holds is shown, in time, and it is said."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from memoryvault.bench.dead_disk import unanswered
from memoryvault.index import file_check
from memoryvault.index.engine import RecallQuery, RecallResult
from memoryvault.tests.index.bed import Bed, slugs
from memoryvault.tests.support.hurry import patience


@dataclass
class Hanging:
    bed: Bed
    wake: Callable[[], None]
    """The disk answers again."""


@pytest.fixture
def hanging(bed: Bed) -> Iterator[Hanging]:
    """One note is as it was, the other was changed and whoever opens it waits."""
    bed.write("notes/quick.md", "We install with pnpm, on quick disks.", status="active")
    stuck = bed.write("notes/stuck.md", "We install with pnpm, wherever it is stuck.", status="active")
    for number in range(8):
        bed.write(f"notes/n{number}.md", f"Filler about nothing much, number {number}.", status="active")
    bed.index()
    with ExitStack() as held:
        held.enter_context(unanswered([stuck]))
        yield Hanging(bed, wake=held.close)


@pytest.mark.hurried
def test_hits_are_shown_as_they_were_indexed_within_the_budget(hanging: Hanging) -> None:
    engine = hanging.bed.engine(dense=False)
    begun = time.monotonic()
    result = engine.recall(RecallQuery("install pnpm stuck"), budget_ms=200 * patience())
    took = time.monotonic() - begun
    hanging.wake()
    assert set(slugs(result)) == {"quick", "stuck"}
    assert result.degraded == ("no-model", "files-late")
    assert took < 0.3 * patience()


@pytest.mark.slow
@pytest.mark.hurried
def test_who_asks_without_a_budget_waits_no_longer_than_two_seconds(hanging: Hanging) -> None:
    engine = hanging.bed.engine(dense=False)
    results: list[RecallResult] = []
    asking = threading.Thread(target=lambda: results.append(engine.recall(RecallQuery("install pnpm stuck"))))
    asking.start()
    asking.join(8 * patience())
    came = list(results)
    hanging.wake()
    asking.join()
    assert came, "it would hold a place in the service for ever"
    assert set(slugs(came[0])) == {"quick", "stuck"}
    assert "files-late" in came[0].degraded


@pytest.mark.hurried
def test_a_dead_disk_does_not_take_a_thread_for_every_prompt(hanging: Hanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_check, "MAX_RUNNING_CHECKS", 1)
    engine = hanging.bed.engine(dense=False)
    engine.recall(RecallQuery("install pnpm stuck"), budget_ms=60)
    begun = time.monotonic()
    result = engine.recall(RecallQuery("install pnpm stuck"), budget_ms=5000)
    took = time.monotonic() - begun
    hanging.wake()
    assert "files-late" in result.degraded
    assert took < 1 * patience()
    time.sleep(0.1 * patience())
    assert "files-late" not in engine.recall(RecallQuery("filler number 3"), budget_ms=5000).degraded
