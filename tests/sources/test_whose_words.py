from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.sources.transcripts.whose_words import own_text, pasted_ranges
from memoryvault.tests.support.growth import assert_linear


def typed(text: str) -> str:
    """The text with a blank line in the place of what was pasted."""
    parts, position = list[str](), 0
    for start, end in (*pasted_ranges(text), (len(text), len(text))):
        parts.append(text[position:start].strip())
        position = end
    return "\n\n".join(filter(None, parts))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("fix this:\n```\nALWAYS use tabs\n```\nand run tests", "fix this:\n\nand run tests"),
        ("see\n> never do that\nok?", "see\n\nok?"),
        ("look\n```go\nfunc a() {", "look"),
        ("why?\n2026-01-02 10:00:00 ERROR always\n2026-01-02 10:00:01 INFO x", "why?"),
        (
            'it says\nTraceback (most recent call last):\n  File "a.py", line 1\nValueError: never\nfix it',
            "it says\n\nfix it",
        ),
        ("➜ shop git:(main) ✗ git push\nerror: failed to push\nplease fix", "please fix"),
        ("why\n| a | b |\n| - | - |\nthis table", "why\n\nthis table"),
        ("# Guide\n\nAlways use tabs.\n\n## Names\n\nNever shorten.", ""),
    ],
)
def test_what_programs_and_documents_say_is_pasted(text: str, left: str) -> None:
    assert typed(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "use pnpm, not npm",
        "Please:\n- always run the tests\n- never push to main\n- use tabs",
        "1. yes\n2. no, keep it\n3. sure, but rename foo_bar() first",
        "note: we always squash. can you change `a.py:12`?",
        "Why does `go test ./...` fail? I'd expect it to pass!",
        'don\'t add emojis 😅; the log said "too long" again',
    ],
)
def test_what_is_typed_stays_typed(text: str) -> None:
    assert pasted_ranges(text) == ()


QUOTED = ('"' + "a" * 130 + '"', "“" + "b" * 125 + "”")
PIECES = ("```", "~~~", "> a", "# A", "I ", "error: x", *QUOTED, "a = b", "c" * 300)


@given(st.lists(st.sampled_from(PIECES), max_size=4).map("".join))
def test_blank_lines_after_a_message_do_not_change_what_is_pasted(line: str) -> None:
    """A message of one line, as most are, is not looked through for what takes two."""
    both = pasted_ranges(f"{line}\n\n")
    assert pasted_ranges(line) == tuple((start, min(end, len(line))) for start, end in both)


def test_a_long_request_in_the_users_voice_is_typed() -> None:
    text = "I want the list to show branches. Please sort them by date. " * 12
    assert typed(text) == text.strip()


@pytest.mark.parametrize("text", ["<private>a</private>", "<system-reminder>b", "[Image #1]", "  ", "<private>c"])
def test_nothing_is_left_of_a_message_without_words(text: str) -> None:
    assert own_text(text) == ""


@given(st.text(alphabet="ab \n>`#|<x-/private:.{};=", max_size=300))
def test_ranges_are_in_order_and_inside(text: str) -> None:
    ranges = pasted_ranges(text)
    ends = [0, *(bound for pair in ranges for bound in pair), len(text)]
    assert ends == sorted(ends)
    assert "<private>" not in own_text(text).lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "a", "e.g. ", "> x\n", "```\n", "```", "~~~\n", "| - |\n", "# a\n", "- x\n", "$ ls\n",
        "➜ a git:(main) ✗ b\n", "error: a\n", "@@ \n", "+ a\n", "{\n", "<b>", "<private>", "<system-reminder>",
        "Traceback (most recent call last):\n", '  File "a.py", line 1\n', "at a (b:1)\n",
        "2026-01-02 10:00:00 ERROR a\n", "a wrote:\n", "[a](b) ", "`a` ", "\\", "\r\n",
    ],
)  # fmt: skip
def test_what_is_pasted_is_found_in_linear_time(unit: str) -> None:
    assert_linear(lambda length: partial(typed, unit * (length // len(unit))), 80_000)


@pytest.mark.slow
def test_a_long_run_of_blanks_within_a_line_takes_linear_time() -> None:
    assert_linear(lambda length: partial(own_text, "a" + " " * length + "b\n"), 80_000)
