"""A rule within a quotation of several sentences is somebody else's, unless the user says that it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.sentences import sentences
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.tests.support.growth import assert_linear
from memoryvault.vault.turn import Origin, Role, Turn


def saved(text: str) -> list[str]:
    """What is saved unasked."""
    found: list[Candidate] = mine(
        [Turn(Role.USER, Origin.PROMPT, text, "record", "session", cwd="/home/dev/shop", confirmed=True)]
    )
    return [candidate.statement for candidate in found if tier_of(candidate)[0] is Tier.HIGH]


@pytest.mark.parametrize(
    "text",
    [
        'The mail was "Be nice. Never push to main. Thanks." what do I answer?',
        'the banner shows: "Please note. Always run the linter before committing. Bye."',
        "The mail was “Be nice. Never push to main. Thanks.” what do I answer?",
        "In der Mail stand „Be nice. Never push to main. Thanks.“ what do I answer?",
        "the sign reads «Be nice. Never push to main. Thanks.», funny",
        'a colleague told me "my rule: be fast. Never push to main. Thanks." ok?',
    ],
)
def test_what_stands_in_a_quotation_is_not_saved_unasked(text: str) -> None:
    assert saved(text) == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (
            'Always use "foo" in tests. Never use "bar" anywhere.',
            ['Always use "foo" in tests.', 'Never use "bar" anywhere.'],
        ),
        (
            'Never write "Generated with". Always write "feat: x".',
            ['Never write "Generated with".', 'Always write "feat: x".'],
        ),
        ('Always end commit messages with "Closes #12."', ['Always end commit messages with "Closes #12."']),
        ('He said "never again", and he\'s right. Always use pnpm.', ["Always use pnpm."]),
        ('always put 27" monitors last. Always use pnpm. never show 32" ones', ["Always use pnpm."]),
    ],
)
def test_marks_within_and_before_a_rule_leave_it_the_users(text: str, rules: list[str]) -> None:
    assert set(rules) <= set(saved(text))


def test_a_quotation_that_the_user_calls_a_rule_of_the_users_is_one() -> None:
    assert saved('my rule: "Always use pnpm. Never use npm."') == ['Never use npm."']


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ['He said "be kind. Never push." Then. ', 'my rule: "a. b. ', '" . " A. ', "“x. y” «"]
)
def test_a_line_of_quotations_is_read_in_linear_time(piece: str) -> None:
    def line(size: int) -> Callable[[], object]:
        turn = Turn(Role.USER, Origin.PROMPT, piece * (size // len(piece)), "record", "session")
        return lambda: sentences(turn)

    assert_linear(line, 80_000)
