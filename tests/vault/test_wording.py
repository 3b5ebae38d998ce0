"""A text that is too long for its line says so, and stops at a word."""

from hypothesis import given
from hypothesis import strategies as st

from memoryvault.vault.wording import LEAST_LEFT_OUT, beginning_of, cut, end_of


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


@given(st.text(alphabet='ab \n"', max_size=80), st.integers(1, 60))
def test_no_word_is_cut_in_two_but_one_that_fills_all_of_the_room(text: str, characters: int) -> None:
    words = text.replace('"', " ").split()
    for part in (beginning_of(text, characters), end_of(text, characters)):
        left = part.replace('"', " ").split()
        assert len(part) <= max(characters, 0)
        assert set(left) <= set(words) or len(left) == 1
    assert text.startswith(beginning_of(text, characters))
    assert text.endswith(end_of(text, characters))


def test_a_text_without_blanks_between_its_words_fills_the_room() -> None:
    """Of such a text all was dropped but what a blank divides from it."""
    told = "端口已经被占用，因此数据库连接失败。" * 50
    assert beginning_of(f"错误 {told}", 300) == f"错误 {told}"[:300]
    assert end_of(f"{told}\n", 300) == f"{told}\n"[-300:]
    assert beginning_of(f"{told[:18]}sk-1234567890 {told}", 25) == told[:18]
    assert end_of(f"{told}sk-1234567890{told[:18]}", 24) == told[:18]


def test_the_end_begins_with_a_line_if_one_is_near() -> None:
    lines = "x " * 100
    assert end_of(f"password: hunter2\n{lines}", len(lines) + 8) == lines, "not with a value without its name"
    assert end_of(f"password: hunter2 {lines}", len(lines) + 4) == f" {lines}"
