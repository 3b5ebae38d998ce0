"""What is said in one sentence, but is two things to remember, becomes two memories."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.routing import tier_of
from memoryvault.vault.turn import Origin, Role, Turn


def mined(text: str) -> list[Candidate]:
    turn = Turn(Role.USER, Origin.PROMPT, text, record="r", session="s", cwd="/home/dev/shop", confirmed=True)
    return mine([turn])


def statements(text: str) -> list[tuple[str, str]]:
    """Tier and statement of each candidate."""
    return [(str(tier_of(each)[0]), each.statement) for each in mined(text)]


@pytest.mark.parametrize(
    ("text", "rule", "fact"),
    [
        (
            "never push on Fridays, and please remember that staging is at port 8081",
            "never push on Fridays",
            "please remember that staging is at port 8081",
        ),
        (
            "Never push on Fridays; also remember that staging is at port 8081.",
            "Never push on Fridays",
            "remember that staging is at port 8081.",
        ),
        (
            "Always squash and please remember that staging is at port 8081",
            None,
            "please remember that staging is at port 8081",
        ),
        (
            "Never push on Fridays. Also remember that staging is at port 8081.",
            "Never push on Fridays.",
            "Also remember that staging is at port 8081.",
        ),
        (
            "Great work; also remember that staging is at port 8081.",
            None,
            "remember that staging is at port 8081.",
        ),
    ],
)
def test_a_rule_and_a_fact_to_remember_are_two_memories(text: str, rule: str | None, fact: str) -> None:
    found = statements(text)
    assert ("MEDIUM", fact) in found
    assert [statement for tier, statement in found if tier == "HIGH"] == ([rule] if rule else [])


def test_a_rule_beside_a_fact_of_the_project_holds_everywhere() -> None:
    rule, fact = mined("never push on Fridays, and please remember that staging is at port 8081")
    assert (rule.scope, fact.scope) == ("personal", "project")
    assert "staging" in rule.excerpt
    assert "staging" not in rule.statement


def test_an_idea_does_not_swallow_the_fact_before_it() -> None:
    text = "Great work; also remember that staging is at port 8081. It would be nice to have a dark mode some day."
    fact, idea = mined(text)
    assert (fact.category, fact.statement) == ("preference", "remember that staging is at port 8081.")
    assert (idea.category, idea.statement) == ("idea", "It would be nice to have a dark mode some day.")


def test_an_idea_that_speaks_of_the_fact_before_it_keeps_it() -> None:
    *_, idea = mined(
        "Please remember that staging is at port 8081. It would be nice to move that to a new box some day."
    )
    assert idea.category == "idea"
    assert idea.statement.startswith("Please remember that staging is at port 8081. It would")


@pytest.mark.parametrize(
    "text",
    [
        "When you deploy, please remember that staging is at port 8081",
        "Always save the draft, and remember that it was closed",
        "The form should save the draft, and remember that the user closed the banner",
        "Remember that staging is at port 8081, and never push on Fridays",
        "Never use mocks in unit tests; note that pytest-mock is not installed",
    ],
)
def test_what_only_explains_or_continues_a_sentence_is_not_cut_off(text: str) -> None:
    assert [each.statement for each in mined(text)] in ([], [text])
