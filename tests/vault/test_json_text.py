"""JSON of other programs: whatever is wrong with it is a ValueError."""

import pytest

from memoryvault.runtime.json_text import parse_json


@pytest.mark.parametrize("text", ["{", b'{"a": \xff}', "[" * 100_000, '{"a":' * 100_000])
def test_what_cannot_be_parsed_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_a_value_is_returned() -> None:
    assert parse_json(b'{"a": [1, "\xc3\xa9"]}') == {"a": [1, "é"]}
