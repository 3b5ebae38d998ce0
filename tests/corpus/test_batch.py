"""Which old sessions a job offers to other machines, and which it mines: decided from where each is placed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.services.mining import MiningRequest
from memoryvault.sources.transcripts.corpus import Transcript
from memoryvault.tasks.jobs.corpus_mining import Batch, Reading, plan_batch
from memoryvault.tasks.sharing.origin import MineLocally, Placement, Shareable, Waiting


def reading(name: str) -> Reading:
    transcript = Transcript(Path(f"/t/{name}.jsonl"), "claude", name, f"claude-{name}", 100, 0.0, "/srv/shop")
    return Reading(transcript, MiningRequest(str(transcript.path), "claude", mined_until=40))


OWN, LOCAL, SHAREABLE, AWAITED = map(reading, ("own", "local", "shareable", "awaited"))
PICKED = replace(LOCAL.request, picked=(50,), picked_until=100)
AHEAD: list[tuple[Reading, Placement]] = [
    (LOCAL, MineLocally(PICKED)),
    (SHAREABLE, Shareable()),
    (AWAITED, Waiting(60.0)),
]


def test_what_may_leave_is_offered_together_and_only_what_stays_is_mined_ahead() -> None:
    batch = plan_batch(OWN, Shareable(), AHEAD, may_offer=True)
    assert batch.to_offer == (OWN, SHAREABLE)
    assert batch.to_mine == (OWN, replace(LOCAL, request=PICKED)), "by the request that its result makes"


def test_a_job_whose_own_session_stays_offers_nothing() -> None:
    assert plan_batch(OWN, MineLocally(PICKED), AHEAD, may_offer=True) == Batch(
        to_offer=(), to_mine=(replace(OWN, request=PICKED), replace(LOCAL, request=PICKED))
    )


@pytest.mark.parametrize("placement", [Shareable(), MineLocally(OWN.request)])
def test_a_repeated_job_mines_its_own_session_alone(placement: Shareable | MineLocally) -> None:
    assert plan_batch(OWN, placement, [], may_offer=False) == Batch(to_offer=(), to_mine=(OWN,))


def test_a_reading_has_the_size_that_is_left_to_mine() -> None:
    assert OWN.bytes == 60
