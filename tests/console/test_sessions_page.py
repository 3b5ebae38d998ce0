"""The pages of sessions, and what was learned from each."""

import json
import time
from contextlib import closing
from dataclasses import replace

import pytest

from memoryvault.services import excerpts
from memoryvault.services.corpus.store import CorpusStore
from memoryvault.services.excerpts import excerpts_of, find_transcript
from memoryvault.services.mining import Mined
from memoryvault.services.undoing import Selector
from memoryvault.sources.transcripts.corpus import Transcript
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.tasks.queue.enqueue import open_ledger
from memoryvault.tests.hosts.opencode_rows import OpenCodeRows, typed
from memoryvault.tests.review.support import RULE, Bed
from memoryvault.vault.entry import Source
from memoryvault.vault.marker import Marker, create_marker, mark_reflected

from .support import Front, visible
from .test_search_page import index
from .vaults import transcript

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


def mined(bed: Bed, *sessions: str) -> None:
    """The same rule was said in each of these sessions, one after the other."""
    for number, session in enumerate(sessions):
        known(bed, session)
        bed.remember(replace(RULE, session=session, records=(f"r{number}",)))
    index(bed)


@pytest.mark.slow
def test_sessions_are_listed_with_their_state_and_what_they_taught(bed: Bed, front: Front) -> None:
    known(bed, SECOND, project="lighthouse", mined=False)
    mined(bed, FIRST)
    text = visible(front.get("sessions"))
    assert f"{FIRST[:8]} , the session shop claude" in text
    assert "mined 1" in text
    assert "open –" in text
    assert SECOND[:8] not in visible(front.get("sessions", learned="1"))
    assert FIRST[:8] not in visible(front.get("sessions", q="lighthouse"))


@pytest.mark.slow
def test_a_session_tells_what_was_learned_in_it_and_what_came_up_again(bed: Bed, front: Front) -> None:
    mined(bed, FIRST, SECOND)
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
def test_what_was_taken_back_and_said_again_is_of_the_later_session(bed: Bed, front: Front, is_undone: bool) -> None:
    mined(bed, FIRST)
    (path,) = bed.files()
    if is_undone:
        bed.undo.carry_out(Selector(session=FIRST))
    else:
        (bed.vault / path).unlink()
    index(bed)
    mined(bed, SECOND)
    assert list(bed.files()) == [path]
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


def test_of_what_another_session_said_too_a_session_tells_its_own_part_was_undone(bed: Bed, front: Front) -> None:
    mined(bed, FIRST, SECOND)
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
    three_days_ago = time.time() - 3 * 86400
    found = Transcript(
        transcript, "claude", SECOND, "claude-0123456789abcdef", 2000, three_days_ago, "/home/me/lighthouse"
    )
    CorpusStore(bed.settings.state).advance(found, Mined((), 2000, 1500, 0, False, "claude"))
    listed = visible(front.get("sessions"))
    assert f"nothing learned {SECOND[:8]} , the session lighthouse claude 3 days ago from before –" in listed
    assert SECOND[:8] in visible(front.get("sessions", q="lighthouse"))
    story = visible(front.get("sessions", id=SECOND))
    assert "2 kB; 500 bytes to come" in story
    assert "0 entries were learned in it" in story


def test_an_unknown_session_page_is_an_error(front: Front) -> None:
    answer = front.get("sessions", id="../../etc/passwd")
    assert answer.status_code == 400
    assert "is not a session" in visible(answer)
    assert "there is no session nobody" in visible(front.get("sessions", id="nobody"))


ONE, OTHER, GONE = "3f0c6a52-0000-4000-8000-000000000001", "0000000a-0000-4000-8000-000000000002", "gone"


def test_transcripts_are_found_by_their_names(bed: Bed) -> None:
    whole = transcript(bed.root, [("user", "Always use pnpm.")], ONE)
    folders = [bed.settings.session_folders[host] for host in ("codex", "copilot")]
    ended = folders[0] / "2026" / "05" / "04" / f"rollout-2026-05-04-{OTHER}.jsonl"
    inside = folders[1] / "third" / "events.jsonl"
    for path in (ended, inside, whole.parent / f"agent-{ONE}.jsonl", ended.with_name(f"rollout-1-{OTHER}0.jsonl")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    outside = bed.root / "outside.jsonl"
    outside.write_text("{}\n")
    ended.with_name(f"rollout-2026-05-04-{GONE}.jsonl").symlink_to(outside)
    sources = [Source("claude", ONE), Source("codex", OTHER), Source("copilot", "third"), Source("codex", GONE)]
    found = [find_transcript(bed.settings, source) for source in (*sources, Source("claude", "../x"))]
    assert found == [whole, ended, inside, None, None]


def test_each_source_has_its_own_excerpt(bed: Bed) -> None:
    turns = [("user", f"Say {number}.") for number in range(9)]
    transcript(bed.root, turns, ONE)
    gone, there = excerpts_of(bed.settings, [Source("claude", GONE), Source("claude", ONE, ("3f0c6a52-r5",))])
    assert gone.missing == "Its transcript is not on this machine any more."
    assert [str(piece.text) for piece in there.pieces if piece.is_evidence] == ["Say 5."]
    assert len(there.pieces) == excerpts.BEFORE + 1 + excerpts.AFTER


def test_a_session_in_opencodes_database_is_found_without_a_marker(bed: Bed) -> None:
    rows = OpenCodeRows(bed.settings.session_folders["opencode"])
    with closing(rows):
        rows.session("ses_1", "/home/dev/shop")
        for number in range(9):
            rows.user("ses_1", typed(f"Say {number}."))
        (evidence,) = [each.record for each in open_transcript(rows.named("ses_1")) if each.text == "Say 5."]
        there, gone = excerpts_of(bed.settings, [Source("opencode", "ses_1", (evidence,)), Source("opencode", "ses_2")])
    assert [str(piece.text) for piece in there.pieces if piece.is_evidence] == ["Say 5."]
    assert len(there.pieces) == excerpts.BEFORE + 1 + excerpts.AFTER
    assert gone.missing == "Its transcript is not on this machine any more."


def test_a_database_that_cannot_be_read_hides_no_other_agents_session(bed: Bed) -> None:
    (root := bed.settings.session_folders["opencode"]).mkdir(parents=True)
    (root / "opencode.db").write_bytes(b"no database" * 100)
    assert find_transcript(bed.settings, Source("claude", ONE)) is None


def test_a_tool_call_without_text_is_shown_by_name_and_an_empty_output_left_out(bed: Bed) -> None:
    path = transcript(bed.root, [("user", "Say 0."), ("assistant", "-"), ("user", "-"), ("user", "Say 3.")], ONE)
    said, call, output, evidence = map(json.loads, path.read_text("utf-8").splitlines())
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "ExitPlanMode", "input": {}}]
    output["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": ""}]
    path.write_text("".join(json.dumps(line) + "\n" for line in (said, call, output, evidence)), "utf-8")
    (found,) = excerpts_of(bed.settings, [Source("claude", ONE, ("3f0c6a52-r3",))])
    assert [str(piece.text) for piece in found.pieces] == ["Say 0.", "ExitPlanMode", "Say 3."]


@pytest.mark.parametrize("separators", [None, (",", ":")])
def test_a_record_is_looked_for_where_it_names_itself_and_not_where_it_is_mentioned_first(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, separators: tuple[str, str] | None
) -> None:
    """The first line of a session may name its last record, megabytes before."""
    path = transcript(bed.root, [("user", f"Say {number}.") for number in range(200)], ONE)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines.insert(0, {"type": "summary", "summary": "Says numbers", "leafUuid": "3f0c6a52-r199"})
    path.write_text("".join(json.dumps(line, separators=separators) + "\n" for line in lines), "utf-8")
    monkeypatch.setattr(excerpts, "READ_BYTES", 10_000)
    (found,) = excerpts_of(bed.settings, [Source("claude", ONE, ("3f0c6a52-r199",))])
    assert [str(piece.text) for piece in found.pieces] == ["Say 196.", "Say 197.", "Say 198.", "Say 199."]


@pytest.mark.parametrize("separators", [None, (",", ":")])
def test_a_step_of_antigravity_is_found_by_its_number(bed: Bed, separators: tuple[str, str] | None) -> None:
    file = bed.root / f"home/.gemini/antigravity/brain/{ONE}/.system_generated/logs/transcript.jsonl"
    file.parent.mkdir(parents=True)
    steps = (
        {"source": "USER_EXPLICIT", "type": "USER_INPUT", "content": f"<USER_REQUEST>Say {number}.</USER_REQUEST>"}
        for number in range(20)
    )
    lines = [json.dumps({"step_index": number, **step}, separators=separators) for number, step in enumerate(steps)]
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (found,) = excerpts_of(bed.settings, [Source("antigravity", ONE, ("step:1",))])
    assert [str(piece.text) for piece in found.pieces if piece.is_evidence] == ["Say 1."]
    (missing,) = excerpts_of(bed.settings, [Source("antigravity", ONE, ("step:99",))])
    assert missing.missing == "Its transcript does not hold these lines any more."
