"""The type of text that may be written."""

import pytest

from memoryvault.vault.scrubbed import Scrubbed


def test_trusted_text_needs_a_reason() -> None:
    assert Scrubbed.trusted("x", reason="our own words") == "x"
    with pytest.raises(ValueError, match="reason"):
        Scrubbed.trusted("x", reason=" ")


def test_mixing_with_other_text_loses_the_type() -> None:
    text = Scrubbed("a")
    assert type(text + " b") is str
    assert type(f"{text}") is str
    assert type(text.strip()) is str


def test_joining_scrubbed_texts_keeps_it_and_takes_nothing_else() -> None:
    joined = Scrubbed.joined([Scrubbed("a"), Scrubbed(""), Scrubbed("b")])
    assert joined == "a\n\nb"
    assert isinstance(joined, Scrubbed)
    with pytest.raises(TypeError):
        Scrubbed.joined([Scrubbed("a"), "b"])  # type: ignore[list-item]


def test_scrubbed_text_on_one_line_keeps_the_type() -> None:
    line = Scrubbed(" two\n\n lines\t").on_one_line()
    assert line == "two lines"
    assert isinstance(line, Scrubbed)
