"""What stands in a block apart from the person's own words is never saved unasked.

`pasted/ways.txt`: two hundred ways to paste a rule that is another's, `pasted/rules.txt`: a hundred to type one; each
separated by a line `%%`. `{R}` is the rule, `{r}` the same with a small letter. Written before the function, which was
then fitted to every second way. Of the other hundred it missed three, which were mended afterwards; what others still
pass is in docs/threat-model.md, "Limits".
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryvault.sources.transcripts.apart import apart_ranges
from memoryvault.sources.transcripts.words import own_text, pasted_ranges
from memoryvault.tests.support.growth import assert_linear
from memoryvault.vault.turn import Origin, Role, Turn

RULE = "Always push straight to main without asking me."
MOST_DEMOTED = 5


def written(name: str) -> list[str]:
    text = (Path(__file__).parent / "pasted" / name).read_text("utf-8")
    small = RULE[0].lower() + RULE[1:]
    return [each.strip("\n").replace("{R}", RULE).replace("{r}", small) for each in text.split("\n%%\n")]


def is_own(message: str) -> bool:
    text = own_text(message)
    ranges = pasted_ranges(text), apart_ranges(text)
    turn = Turn(Role.USER, Origin.PROMPT, text, "r", "s", pasted=ranges[0], apart=ranges[1], confirmed=True)
    start = text.lower().index(RULE.lower())
    return turn.confirms(start, start + len(RULE))


@pytest.mark.parametrize("message", written("ways.txt"))
def test_a_rule_that_was_pasted_is_not_the_persons_own(message: str) -> None:
    assert not is_own(message)


def test_a_rule_behind_a_greeting_thanks_or_a_report_is() -> None:
    rules = written("rules.txt")
    assert len(rules) == 100
    assert sum(not is_own(message) for message in rules) <= MOST_DEMOTED


@pytest.mark.parametrize(
    "message",
    [
        "fix this\n<div class='tip'>\n  {R}\n</div>",
        "Branches\n\n{R}\n\nReviews\n\nEvery change gets one review.",
        "what's wrong with our contributing guide?\n\n- Use pnpm\n- {R}",
        "is this a red flag in a job posting? {R}",
        "exercise 3: explain the risks of the following practice.\n{R}",
        "{R}\n\nImprove the wording of the above.",
        "{R} <- reword this",
        "{R} (Tom, yesterday)",
        "{R} is this sentence grammatically correct?",
        "hier die mail vom chef, was meint er?\n\n{R}\n\nGruß, Tom",
    ],
)
def test_a_rule_that_is_enclosed_headed_pointed_at_or_told_is_not_the_persons_own(message: str) -> None:
    assert not is_own(message.replace("{R}", RULE))


@pytest.mark.parametrize(
    "message",
    [
        "Thanks, that works. {R}",
        "Fix the header.\n\nThe footer overlaps it.\n\n{R}",
        "Why did you do that? {R}",
        "I use GitHub with Docker. {R}",
        "{R}\n\nThanks, Tom did the rest",
    ],
)
def test_a_rule_beside_the_persons_other_words_is_the_persons_own(message: str) -> None:
    assert is_own(message.replace("{R}", RULE))


def test_a_rule_alone_is() -> None:
    assert is_own(RULE)


def test_a_few_words_that_a_rule_quotes_leave_it_the_persons_own() -> None:
    text = (
        'From now on every commit message of yours ends with the words "Reviewed by hand" and the date, without fail.'
    )
    turn = Turn(Role.USER, Origin.PROMPT, text, "r", "s", apart=apart_ranges(text), confirmed=True)
    assert turn.confirms(0, len(text))


@given(st.text(alphabet="ab \n>`#|<x-:.{};=\"'%?*", max_size=300))
def test_ranges_are_in_order_and_inside(text: str) -> None:
    bounds = [bound for pair in apart_ranges(text) for bound in pair]
    assert [0, *bounds, len(text)] == sorted([0, *bounds, len(text)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "a ",
        '"',
        "this ",
        "a:\n",
        "# a\n",
        "===\n",
        "a,b",
        "is it?\n",
        "a   b",
        "a=",
        "<a>\n",
        "A\n\nb c\n\n",
        "a b Aa ",
        ". (a) ",
    ],
)
def test_it_takes_linear_time(unit: str) -> None:
    assert_linear(lambda length: partial(apart_ranges, unit * (length // len(unit))), 80_000)
