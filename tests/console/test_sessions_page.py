"""The pages of sessions, and what was learned from each."""

import time
from dataclasses import replace

import pytest

from memoryvault.services.corpus.store import CorpusStore
from memoryvault.services.mining import Mined
from memoryvault.services.undoing import Selector
from memoryvault.sources.transcripts.corpus import Transcript
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.review.support import RULE, Bed
from memoryvault.vault.marker import Marker, create_marker, mark_reflected

from .support import Front, visible
from .test_search_page import index

FIRST, SECOND = "3f0c6a52-aaaa", "77777777-bbbb"


def known(bed: Bed, session: str, *, project: str = "shop", mined: bool = True) -> None:
    transcript = bed.root / f"{session}.jsonl"
    transcript.write_text("x" * 2500, "utf-8")
    create_marker(
        bed.settings.state.markers,
        Marker(session, "2026-05-04T09:00:00+00:00", "startup", str(transcript), f"/home/me/{project}", "claude", 2000),
    )
    if mined:
        mark_reflected(bed.settings.state.markers, session)


@pytest.mark.slow
def test_sessions_are_listed_with_their_state_and_what_they_taught(bed: Bed, front: Front) -> None:
    known(bed, FIRST)
    known(bed, SECOND, project="lighthouse", mined=False)
    bed.remember(replace(RULE, session=FIRST))
    index(bed)
    text = visible(front.get("sessions"))
    assert f"{FIRST[:8]} , the session shop claude" in text
    assert "mined 1" in text
    assert "open –" in text
    assert SECOND[:8] not in visible(front.get("sessions", learned="1"))
    assert FIRST[:8] not in visible(front.get("sessions", q="lighthouse"))


@pytest.mark.slow
def test_a_session_tells_what_was_learned_in_it_and_what_came_up_again(bed: Bed, front: Front) -> None:
    known(bed, FIRST)
    known(bed, SECOND)
    bed.remember(replace(RULE, session=FIRST))
    bed.remember(replace(RULE, session=SECOND, records=("r7",)))
    index(bed)
    with open_ledger(bed.settings) as ledger:
        job = ledger.enqueue("reflect.session", {"session": FIRST})
        ledger.enqueue("reflect.session", {"session": SECOND})
    text = visible(front.get("sessions", id=FIRST))
    assert "1 entry was learned in it" in text
    assert "pnpm" in text
    assert "500 bytes to come" in text
    assert f"{job} queued" in text
    again = visible(front.get("sessions", id=SECOND))
    assert "0 entries were learned in it" in again
    assert "1 entry was known and came up again" in again


@pytest.mark.slow
@pytest.mark.parametrize("is_undone", [True, False])
def test_what_was_taken_back_and_said_again_is_of_the_later_session_alone(
    bed: Bed, front: Front, is_undone: bool
) -> None:
    known(bed, FIRST)
    known(bed, SECOND)
    bed.remember(replace(RULE, session=FIRST))
    (path,) = bed.files()
    if is_undone:
        bed.undo.carry_out(Selector(session=FIRST))
    else:
        (bed.vault / path).unlink()
    index(bed)
    bed.remember(replace(RULE, session=SECOND, records=("r7",)))
    assert list(bed.files()) == [path]
    index(bed)
    for session, learned in ((FIRST, "0 entries were learned in it"), (SECOND, "1 entry was learned in it")):
        text = visible(front.get("sessions", id=session))
        assert learned in text
        assert "came up again" not in text


@pytest.mark.parametrize("has_marker", [True, False])
def test_a_session_tells_what_undo_took_back(bed: Bed, front: Front, has_marker: bool) -> None:
    if has_marker:
        known(bed, FIRST)
    bed.remember(replace(RULE, session=FIRST))
    (path,) = bed.files()
    bed.undo.carry_out(Selector(session=FIRST))
    text = visible(front.get("sessions", id=FIRST))
    assert "0 entries were learned in it" in text
    assert "1 note was taken back Always use pnpm, not npm removed · " in text
    assert path in text


def test_of_what_another_session_said_too_the_session_tells_that_its_own_part_was_taken_back(
    bed: Bed, front: Front
) -> None:
    bed.remember(replace(RULE, session=FIRST))
    bed.remember(replace(RULE, session=SECOND, records=("r7",)))
    bed.undo.carry_out(Selector(session=SECOND))
    index(bed)
    assert "without what this session added" in visible(front.get("sessions", id=SECOND))
    assert "taken back" not in visible(front.get("sessions", id=FIRST))


def test_a_session_whose_marker_is_gone_is_known_by_its_entries(bed: Bed, front: Front) -> None:
    bed.remember(replace(RULE, session=FIRST))
    index(bed)
    listed = visible(front.get("sessions"))
    assert "long ago" in listed
    assert " h ago" not in listed  # An entry knows its day, not its hour.
    assert "Its marker is gone" in visible(front.get("sessions", id=FIRST))


def test_a_session_that_a_backfill_mined_is_listed_whether_it_taught_anything_or_not(bed: Bed, front: Front) -> None:
    transcript = bed.root / "old.jsonl"
    transcript.write_text("x" * 2500, "utf-8")
    CorpusStore(bed.settings.state).advance(
        Transcript(
            transcript,
            "claude",
            SECOND,
            "claude-0123456789abcdef",
            size=2000,
            modified=time.time() - 3 * 86400,
            cwd="/home/me/lighthouse",
        ),
        Mined((), 2000, 1500, 1500, 0, False, "claude"),
    )
    assert f"{SECOND[:8]} , the session lighthouse claude 3 days ago from before –" in visible(front.get("sessions"))
    assert SECOND[:8] in visible(front.get("sessions", q="lighthouse"))
    story = visible(front.get("sessions", id=SECOND))
    assert "2 kB; 500 bytes to come" in story
    assert "0 entries were learned in it" in story


def test_an_unknown_session_page_is_an_error(front: Front) -> None:
    answer = front.get("sessions", id="../../etc/passwd")
    assert answer.status_code == 400
    assert "is not a session" in visible(answer)
    assert "there is no session nobody" in visible(front.get("sessions", id="nobody"))
