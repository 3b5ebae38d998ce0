"""Lines of a transcript as objects."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.runtime.json_text import parse_json
from memoryvault.sources.transcripts.claude import ClaudeReader
from memoryvault.sources.transcripts.codex import CodexReader
from memoryvault.sources.transcripts.hosts import open_transcript
from memoryvault.sources.transcripts.lines import complete_lines, parse_object

from .records import assistant, call, human, result, text_block, words

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=st.dictionaries(st.text(max_size=5), VALUES, max_size=4), ascii_only=st.booleans())
def test_an_object_is_read_as_it_was_written(value: dict[str, object], ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert parse_object(line) == json.loads(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a": "\\ud800 half"}', {"a": "\ud800 half"}),
        (b'{"a": Infinity}', {"a": float("inf")}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": "\xff"}', {"a": "�"}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b"[1]", None),
        (b'{"a": 1', None),
        (b"", None),
        (b'{"a":' * 100_000, None),
    ],
)
def test_json_that_strict_parsers_refuse_is_read(line: bytes, expected: object) -> None:
    assert parse_object(line) == expected


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_lines_do_not_depend_on_the_size_of_blocks(tmp_path: Path, block: int) -> None:
    lines = [b"{}\n", b"\n", b'{"a": "\r"}\n', b"x" * 21 + b"\n", b"y" * 20 + b"\n", b"\n", b'{"b": 1}']
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    read = list(complete_lines(path, 0, 21, block))
    assert [line.data for line in read] == [b"" if len(line) > 21 else line for line in lines]
    assert [line.too_long for line in read] == [len(line) > 21 for line in lines]
    assert [line.end - line.offset for line in read] == [len(line) for line in lines]
    assert read[-1].end == path.stat().st_size
    assert list(complete_lines(path, read[2].end, 21, block)) == read[3:]


@pytest.mark.parametrize("rest", [b'{"b": 1', b"x" * 30, b"x" * 21])
def test_a_line_whose_end_has_not_come_is_left_for_the_next_time(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"{}\n" + rest)
    assert [line.data for line in complete_lines(path, 0, 21, 4)] == [b"{}\n"]


@pytest.mark.parametrize("read", [lambda path: [*complete_lines(path)], lambda path: [*ClaudeReader(path, 1)]])
def test_a_pipe_instead_of_a_transcript_is_refused_at_once(tmp_path: Path, read: Callable[[Path], object]) -> None:
    pipe = tmp_path / "session.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read(pipe)
    tmp_path.joinpath("folder.jsonl").mkdir()
    with pytest.raises(OSError):
        read(tmp_path / "folder.jsonl")


# What a killed program or a lost power leaves in a transcript: the record behind it is read all the same


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
def test_a_prompt_behind_a_record_without_newline_is_read(tmp_path: Path, before: Mapping[str, Any], left: str) -> None:
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
def test_a_prompt_with_filling_or_a_record_on_its_line_is_read(tmp_path: Path, before: bytes, behind: bytes) -> None:
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


# JSON of other programs: whatever is wrong with it is a ValueError


@pytest.mark.parametrize("text", ["{", b'{"a": \xff}', "[" * 100_000, '{"a":' * 100_000])
def test_what_cannot_be_parsed_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_a_value_is_returned() -> None:
    assert parse_json(b'{"a": [1, "\xc3\xa9"]}') == {"a": [1, "é"]}
