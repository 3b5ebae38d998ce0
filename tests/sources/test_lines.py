"""Lines of a transcript as objects: the quick parser gives what the standard library's would."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryvault.sources.transcripts.lines import MAX_QUICK_BYTES, parse_object

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
def test_what_other_parsers_refuse_is_read_all_the_same(line: bytes, expected: object) -> None:
    assert parse_object(line) == expected


def test_a_very_long_line_is_read_too() -> None:
    text = "x" * MAX_QUICK_BYTES
    assert parse_object(json.dumps({"a": text}).encode()) == {"a": text}
