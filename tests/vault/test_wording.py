"""A text that is too long for its line says so, and stops at a word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryvault.vault.wording import LEAST_LEFT_OUT, cut


def test_a_long_text_ends_at_a_word_with_a_mark() -> None:
    assert cut("one two three four five six seven eight", 12) == "one two …"
    assert cut("one two, three four five six seven eight", 9) == "one two …", "no comma before the mark"
    assert cut("one two three four five six seven eight", 13) == "one two three …", "a word that ends there is kept"


def test_what_the_mark_would_hardly_shorten_is_shown() -> None:
    assert cut("we could also add it to logging, right?", 24) == "we could also add it to logging, right?"
    assert cut("short", 100) == "short"
    assert cut(" two\n lines ", 100) == "two lines"


def test_a_word_longer_than_the_line_is_cut_within() -> None:
    assert cut("." * 99, 40) == "." * 40 + " …", "something is left"
    assert cut("see https://example.org/" + "a" * 60, 40) == "see https://example.org/" + "a" * 16 + " …"


@given(st.text(alphabet="ab ,.\n", max_size=80), st.integers(4, 60))
def test_a_cut_text_is_a_beginning_and_never_much_longer_than_asked(text: str, characters: int) -> None:
    line, shown = " ".join(text.split()), cut(text, characters)
    assert line.startswith(shown.removesuffix(" …"))
    assert shown.endswith(" …") == (shown != line)
    assert len(shown) <= characters + LEAST_LEFT_OUT
