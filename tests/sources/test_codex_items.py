"""Newer versions of Codex write a message as a completed item, and no `user_message` beside it."""

import json
from pathlib import Path

from memoryvault.services.mining import MiningRequest, mine_transcript, mined_from_json, mined_to_json
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.vault.turn import Origin


def message(form: str, text: str, kind: str = "UserMessage") -> dict[str, object]:
    if form == "event":
        payload: dict[str, object] = {
            "type": "user_message" if kind == "UserMessage" else "agent_message",
            "message": text,
        }
    else:
        part: dict[str, object] = {
            "type": "text" if kind == "UserMessage" else "Text",
            "text": text,
            "text_elements": [],
        }
        payload = {"type": "item_completed", "turn_id": "t", "item": {"type": kind, "id": "i", "content": [part]}}
    return {"timestamp": "2026-03-01T10:00:00Z", "type": "event_msg", "payload": payload}


def said(path: Path, *records: dict[str, object]) -> list[tuple[Origin, str]]:
    meta: dict[str, object] = {
        "type": "session_meta",
        "payload": {"id": "s1", "cwd": "/home/dev/shop", "originator": "codex-tui"},
    }
    path.write_text("".join(json.dumps(record) + "\n" for record in (meta, *records)))
    return [(turn.origin, turn.text) for turn in open_transcript(path, host="codex")]


def test_a_message_that_is_an_item_is_read(tmp_path: Path) -> None:
    reasoning: dict[str, object] = {
        "type": "event_msg",
        "payload": {"type": "item_completed", "item": {"type": "Reasoning"}},
    }
    assert said(
        tmp_path / "rollout-1.jsonl",
        message("item", "Use the blue theme."), reasoning, message("item", "Done.", "AgentMessage"),
    ) == [(Origin.PROMPT, "Use the blue theme."), (Origin.ASSISTANT, "Done.")]  # fmt: skip


def test_a_message_recorded_in_both_forms_is_read_once(tmp_path: Path) -> None:
    turns = said(
        tmp_path / "rollout-1.jsonl",
        message("event", "Go on."), message("item", "Go on."), message("item", "Done.", "AgentMessage"),
        message("event", "Done.", "AgentMessage"),
    )  # fmt: skip
    assert turns == [(Origin.PROMPT, "Go on."), (Origin.ASSISTANT, "Done.")]


def test_the_same_words_typed_twice_are_two_prompts(tmp_path: Path) -> None:
    assert len(said(tmp_path / "rollout-1.jsonl", message("item", "Go on."), message("item", "Go on."))) == 2
    assert len(said(tmp_path / "rollout-2.jsonl", message("event", "Go on."), message("event", "Go on."))) == 2


def test_a_fork_names_the_sessions_that_it_begins_with(tmp_path: Path) -> None:
    rule = message("event", "From now on, always run the linter before you commit.")
    headers: list[dict[str, object]] = [
        {"timestamp": "2026-03-01T10:00:00Z", "type": "session_meta", "payload": {"id": session, **more}}
        for session, more in (("third", {"forked_from_id": "second"}), ("second", {"forked_from_id": "first"}))
    ]
    path = tmp_path / "rollout-third.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (*headers, rule)), "utf-8")
    mined = mine_transcript(MiningRequest(str(path), "codex"))
    assert [(each.session, each.forked_from) for each in mined.candidates] == [("third", ("second", "first"))]
    assert mined_from_json(json.loads(json.dumps(mined_to_json(mined)))) == mined
    path.write_text(json.dumps({**headers[1], "payload": {"id": "second"}}) + "\n" + json.dumps(rule) + "\n", "utf-8")
    assert [each.forked_from for each in mine_transcript(MiningRequest(str(path), "codex")).candidates] == [()]
