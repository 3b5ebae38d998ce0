"""Cutting a message into sentences."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.index.message_reader import windows
from memoryvault.pipelines.reading.forms import explicit_form
from memoryvault.pipelines.reading.sentences import sentences
from memoryvault.tests.support.growth import assert_linear

TEXTS = st.text(st.sampled_from(list("aé. !?\n-*1)#>e.g。，`:")), max_size=80)


def cut(text: str) -> list[str]:
    return [part.of(text) for part in sentences(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("no, not unittest. we use pytest here", ["no, not unittest.", "we use pytest here"]),
        ("Use tabs, e.g. in Go. Never spaces!", ["Use tabs, e.g. in Go.", "Never spaces!"]),
        ("- run the tests\n- then push\n", ["run the tests", "then push"]),
        ("1. lint\n2) test", ["lint", "test"]),
        ("version 3.11 stays", ["version 3.11 stays"]),
        ("staging is on port 8443. run the tests", ["staging is on port 8443.", "run the tests"]),
        ("our api version is 3. never break it", ["our api version is 3.", "never break it"]),
        ("do it so: 1. build 2. push", ["do it so: 1. build 2. push"]),
        ("1. build 2. push 3. wait", ["build 2. push 3. wait"]),
        ("am 3. Oktober ist frei", ["am 3. Oktober ist frei"]),
        ("dates as 24.12. instead of 24 Dec. thanks", ["dates as 24.12. instead of 24 Dec.", "thanks"]),
        ("invoices go out on the 3. of each month", ["invoices go out on the 3. of each month"]),
        ("we are on python 3.11. use match", ["we are on python 3.11.", "use match"]),
        ("from 9 a.m. on it is frozen until 5 p.m. Wait", ["from 9 a.m. on it is frozen until 5 p.m.", "Wait"]),
        ("only I do it. R code is theirs", ["only I do it.", "R code is theirs"]),
        ("rename x to y, and from now on keep names short", ["rename x to y,", "and from now on keep names short"]),
        ("fix it and remember that we squash", ["fix it", "and remember that we squash"]),
        ("部署只在星期二进行。不要在周五部署。", ["部署只在星期二进行。", "不要在周五部署。"]),
        ("so is this?! yes", ["so is this?!", "yes"]),
        ("...\n---\n", []),
    ],
)
def test_a_message_is_cut_at_ends_of_sentences_and_lines(text: str, parts: list[str]) -> None:
    assert cut(text) == parts


def test_a_line_that_was_wrapped_goes_on_in_the_next() -> None:
    text = "every pull request needs an entry in the changelog, also when it is only\na small one. thanks"
    assert cut(text) == [text.removesuffix(" thanks"), "thanks"]


@given(TEXTS)
def test_sentences_are_in_order_and_leave_out_no_word(text: str) -> None:
    parts = sentences(text)
    assert all(one.end <= other.start for one, other in itertools.pairwise(parts))
    left_out, position = "", 0
    for part in parts:
        left_out += text[position : part.start]
        position = part.end
    left_out += text[position:]
    assert "é" not in left_out, "a letter that marks no item of a list"
    assert sentences(text) == parts


@given(TEXTS, st.integers(1, 30))
def test_windows_hold_every_sentence_once(text: str, limit: int) -> None:
    parts = sentences(text)
    ranges = windows(text, [(part.start, part.end) for part in parts], len, limit)
    assert [index for first, last in ranges for index in range(first, last)] == list(range(len(parts)))
    for first, last in ranges:
        assert last - first == 1 or parts[last - 1].end - parts[first].start <= limit


@pytest.mark.parametrize("piece", ["a. ", "- ", "1. ", "e.g. ", "# > * ", "word ", "... ", "x\n", "'\")*`_"])
def test_no_text_takes_more_than_linear_time(piece: str) -> None:
    def read(length: int) -> Callable[[], object]:
        text = piece * (length // len(piece))
        return lambda: (sentences(text), explicit_form(text))

    assert_linear(read, 80_000)
