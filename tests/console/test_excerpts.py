"""What was said around a piece of evidence, from the transcripts."""

import json
from contextlib import closing

import pytest

from memoryvault.services import excerpts
from memoryvault.services.excerpts import excerpts_of, find_transcript
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.tests.hosts.opencode_rows import OpenCodeRows, typed
from memoryvault.tests.review.support import Bed
from memoryvault.vault.entry import Source

from .vaults import transcript

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
    bed: Bed, separators: tuple[str, str] | None
) -> None:
    """The first line of a session may name its last record, megabytes before."""
    path = transcript(bed.root, [("user", f"Say {number}.") for number in range(200)], ONE)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines.insert(0, {"type": "summary", "summary": "Says numbers", "leafUuid": "3f0c6a52-r199"})
    path.write_text("".join(json.dumps(line, separators=separators) + "\n" for line in lines), "utf-8")
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
