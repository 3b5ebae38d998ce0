"""The worker carries out decisions in notes, and states problems with a decision in the note."""

import logging
import os
from functools import partial

import pytest

from memoryvault.runtime.errors import EditConflict
from memoryvault.services.decision_property import SETTLED_SECONDS
from memoryvault.services.indexing import APPLY_KEY
from memoryvault.tasks.jobs.written_decisions import apply_handler
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tasks.queue.executor import Executor
from memoryvault.vault.store import VaultStore

from .support import Bed


def worker_looks(bed: Bed) -> float | None:
    """Seconds from now until it looks again by itself; None if it does not."""
    with open_ledger(bed.settings) as ledger:
        job = ledger.enqueue("review.apply", unique_key=APPLY_KEY)
        taken = ledger.take(lambda: "test", 30.0)
        assert taken is not None
        Executor(ledger, {"review.apply": partial(apply_handler, bed.settings)}, 30.0).run(taken)
        assert ledger.get(job).state == "done"
        again = ledger.list_jobs(["queued"], kind="review.apply")
        return again[0].run_at - ledger.now() if again else None


def test_a_note_that_nobody_touches_again_is_told_after_a_minute(bed: Bed, caplog: pytest.LogCaptureFixture) -> None:
    proposal = bed.note("personal-private/_review/x.md", "Lists read well.", kind="preferences", status="pending")
    caplog.set_level(logging.WARNING)
    bed.decide_in_note(proposal, "aprove")
    wait = worker_looks(bed)
    assert wait is not None
    assert 0 < wait <= SETTLED_SECONDS
    assert not caplog.records, "it may be half typed"
    os.utime(bed.vault / proposal, (0, 0))
    assert worker_looks(bed) is None
    assert "decision_error: " in bed.files()[proposal]
    (told,) = caplog.messages
    assert told == f"{proposal}: its decision could not be carried out; it says why itself"
    worker_looks(bed)
    assert len(caplog.records) == 1, "once is enough"


def test_unwritable_note_is_not_described_as_told(
    bed: Bed, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = bed.note("personal-private/_review/x.md", "Lists read well.", kind="preferences", status="pending")
    bed.decide_in_note(proposal, "rejct")
    os.utime(bed.vault / proposal, (0, 0))

    def edited(*_: object, **__: object) -> None:
        raise EditConflict(f"{proposal} was changed since it was read")

    monkeypatch.setattr(VaultStore, "update", edited)
    caplog.set_level(logging.WARNING)
    worker_looks(bed)
    (told,) = caplog.messages
    assert (
        told == f"{proposal}: its decision could not be carried out; `memory review` says why when it is decided there"
    )
