"""Lines of a transcript as objects: the quick parser gives what the standard library's would."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.sources.transcripts.claude import ClaudeReader
from memoryvault.sources.transcripts.lines import MAX_QUICK_BYTES, complete_lines, parse_object

# Beyond 64 bits the quick parser makes a float of a whole number; no host counts so far.
INTEGERS = st.integers(-(2**63), 2**64 - 1)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | st.text(),
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


def test_a_very_long_line_is_read_too() -> None:
    text = "x" * MAX_QUICK_BYTES
    assert parse_object(json.dumps({"a": text}).encode()) == {"a": text}


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
def test_a_named_pipe_instead_of_a_transcript_is_refused_without_waiting(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    pipe = tmp_path / "session.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read(pipe)
    tmp_path.joinpath("folder.jsonl").mkdir()
    with pytest.raises(OSError):
        read(tmp_path / "folder.jsonl")
