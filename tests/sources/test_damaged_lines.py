"""What a killed program or a lost power leaves in a transcript: the record behind it is read all the same."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryvault.sources.transcripts.claude import ClaudeReader
from memoryvault.sources.transcripts.codex import CodexReader
from memoryvault.sources.transcripts.hosts import open_transcript

from .records import assistant, call, human, result, text_block, words

SUMMARY = {"type": "summary", "summary": "Add a parser", "leafUuid": "u"}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
LOOKED = result(2, "a", "x = 1", toolUseResult={"type": "text", "file": {"content": "x = 1\n" * 900}})
THOUGHT = assistant(2, {"type": "thinking", "thinking": "hm", "signature": "s"}, cwd="/home/dev/shop")


def line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "before",
    [SUMMARY, SNAPSHOT, LOOKED, THOUGHT, human(2, "one"), assistant(2, text_block("It does {this}{and that}"))],
    ids=["summary", "snapshot", "result", "thought", "prompt", "answer"],
)
@pytest.mark.parametrize("left", ["whole", "half", "a byte short"])
def test_a_prompt_right_behind_a_record_without_its_newline_is_read(
    tmp_path: Path, before: Mapping[str, Any], left: str
) -> None:
    path = tmp_path / "s.jsonl"
    start = line(assistant(1, call("a", "Read", file_path="a.py"), cwd="/home/dev/shop")) + b"\n"
    data = line(before)
    data = {"whole": data, "half": data[: len(data) // 2], "a byte short": data[:-1]}[left]
    path.write_bytes(start + data + line(human(3, "two")) + b"\n" + line(human(4, "three")) + b"\n")
    reader = ClaudeReader(path)
    found = [(turn.text, turn.offset) for turn in reader if turn.role == "user"]
    is_said = before.get("type") == "user" and before is not LOOKED and left == "whole"
    assert [text for text, _ in found] == [*(["one"] if is_said else []), "two", "three"]
    assert found[-2][1] == len(start + data)
    assert reader.bad_lines == (left != "whole")


@pytest.mark.parametrize(
    ("before", "behind"), [(b"\0" * 700, b""), (b"", b"\0" * 700), (b"", line(SUMMARY)), (b"\xef\xbb\xbf", b"")]
)
def test_a_prompt_with_filling_or_another_record_on_its_line_is_read(
    tmp_path: Path, before: bytes, behind: bytes
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(before + line(human(1, "one")) + behind + b"\n" + line(human(2, "two")) + b"\n")
    assert words(path) == ["one", "two"]


def test_what_looks_like_a_record_inside_of_one_is_not_read(tmp_path: Path) -> None:
    inner = human(7, "said by nobody")
    progress = {"type": "progress", "data": {"message": inner}}
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(progress) + b"\n" + line(assistant(2, text_block(line(inner).decode()))) + b"\n")
    assert words(path) == []


def test_a_reading_that_ended_between_two_records_on_a_line_goes_on_between_them(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(human(1, "one")))
    reader = ClaudeReader(path)
    assert [turn.text for turn in reader] == ["one"]
    with path.open("ab") as file:
        file.write(line(human(2, "two")) + b"\n")
    assert words(path, reader.end_offset) == ["two"]
    (later,) = [turn for turn in ClaudeReader(path) if turn.text == "two"]
    assert later.offset == reader.end_offset


def test_other_hosts_prompts_are_read_behind_half_a_line_too(tmp_path: Path) -> None:
    said = {"timestamp": "t", "type": "event_msg", "payload": {"type": "user_message", "message": "one"}}
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b'{"timestamp":"t","type":"event_msg","payload":{"type":"token_count"' + line(said) + b"\n")
    assert [turn.text for turn in CodexReader(path)] == ["one"]
    said = {"type": "user.message", "id": "1", "data": {"content": "one"}}
    path.write_bytes(b'{"type":"hook.start","data":{"hook' + line(said) + b"\n")
    assert [turn.text for turn in open_transcript(path, host="copilot")] == ["one"]
