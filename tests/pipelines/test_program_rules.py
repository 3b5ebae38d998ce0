"""Rules for the program that is being built are put to the user; rules for the agent that builds it are saved."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.vault.turn import Origin, Role, Turn


def said(text: str) -> list[Candidate]:
    return mine([Turn(Role.USER, Origin.PROMPT, text, "record", "session", cwd="/home/dev/shop", confirmed=True)])


def saved(text: str) -> list[str]:
    return [candidate.statement for candidate in said(text) if tier_of(candidate)[0] is Tier.HIGH]


@pytest.mark.parametrize(
    "text",
    [
        "Never guess when there are fewer than 20 residues, ask then",
        "Never guess when the input is short",
        "Always warn when the balance is below zero",
        "Always skip if there is no header",
        "Never add points when the answer is late",
        "Make it a point to show the score at the end",
        "from now on, show the elapsed time after each guess",
        "don't ever show the answer",
        "Always update the score after a hit",
        "Always open links in a new tab",
        "Never start a round without two players",
    ],
)
def test_a_rule_about_what_the_program_shows_sees_or_is_used_by_is_put_to_the_user(text: str) -> None:
    assert {tier_of(candidate)[0] for candidate in said(text)} == {Tier.MEDIUM}


@pytest.mark.parametrize(
    "text",
    [
        "make it a habit to run the tests",
        "From now on, show me the plan first",
        "From now on, open the pull request as a draft",
        "never use mocks when there is a fake",
        "always start with a test when there is a bug",
        "never merge when the pipeline is red",
        "never guess when you are unsure, ask",
        "always validate user input",
    ],
)
def test_a_rule_about_the_agents_own_work_is_saved_whatever_its_condition(text: str) -> None:
    assert saved(text) == [text]


@pytest.mark.parametrize(
    ("described", "rule"),
    [
        ("The feature is this: a user pastes a text, and we guess its language.", "Never guess without a hint."),
        ("Build me a hangman game, please.", "Never show letters early."),
        ("We need a shop. A visitor can fill a cart.", "Always keep carts for a week."),
    ],
)
def test_a_rule_in_the_description_of_a_program_is_put_to_the_user(described: str, rule: str) -> None:
    assert saved(rule) == [rule]
    found = said(f"{described} {rule}")
    assert [candidate.typed for candidate in found if rule in candidate.statement] == [True]
    assert Tier.HIGH not in {tier_of(candidate)[0] for candidate in found}


@pytest.mark.parametrize(
    "rule", ["Always use type hints.", "Never commit without asking.", "Always write tests first."]
)
def test_a_rule_for_the_agent_beside_the_description_of_a_program_is_saved(rule: str) -> None:
    assert saved(f"Build me a hangman game, please. {rule}") == [rule]


def test_a_rule_in_a_paragraph_after_the_description_is_judged_by_itself() -> None:
    rule = "Never guess without a hint."
    assert saved(f"The feature is this: a user pastes a text, and we guess its language.\n\n{rule}") == [rule]
