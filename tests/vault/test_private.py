"""Where passages that a user marked `<private>` begin and end."""

from functools import partial

import pytest

from memoryvault.runtime.private import find_private_spans, strip_private
from memoryvault.tests.support.growth import assert_linear


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>x</private> b", "a  b"),
        ("a <private>x <private>y</private> z</private> b", "a  b"),
        ("<private>x</private> a <private>y</private>", " a "),
        ("a <PRIVATE why='z'>\nx\n\nx\n</Private > b", "a  b"),
        ("a < private >x</ private > b", "a  b"),
        ("a &lt;private&gt;x&lt;/private&gt; b", "a  b"),
        ("a <private>x <private>y</private> z", "a "),
        ("x</private> b", " b"),
        ("a `<private>`x`</private>` b", "a `` b"),
        ("a <private>x to the end", "a "),
        ("private matters", "private matters"),
        *[(f"a <{word}>x</{word}> b", "a  b") for word in ("PR\u0130VATE", "pr\u0131vate")],  # Turkish letters
    ],
)
def test_what_is_marked_is_taken_out(text: str, left: str) -> None:
    assert strip_private(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "wrap it in `<private>` and it is not kept",
        "`<private>` begins it, `<private why=''>` too",
        "a private matter, <privateer> and <private/>",
    ],
)
def test_a_tag_that_is_only_spoken_of_marks_nothing(text: str) -> None:
    assert strip_private(text) == text


def test_a_name_in_backticks_hides_no_real_passage() -> None:
    assert strip_private("`<private>` hides: <private>x</private> ok") == "`<private>` hides:  ok"


def test_a_closing_tag_alone_marks_nothing_where_nothing_was_cut_off() -> None:
    assert find_private_spans("a </private> b") == []


@pytest.mark.parametrize("unit", ["<private>", "</private>", "<private ", "<private>x</private>", "`<private>`"])
def test_it_takes_linear_time(unit: str) -> None:
    assert_linear(lambda count: partial(strip_private, unit * count), 12_000)
