"""A rule is saved unasked only where nothing that is said beside it speaks against it; then the user is asked."""

from __future__ import annotations

import pytest

from .test_joined_statements import statements


@pytest.mark.parametrize(
    "rest",
    [
        "Kidding, obviously spaces.",
        "Hmm no, forget that.",
        "no wait, ignore this",
        "What could possibly go wrong.",
        "Is that our rule?",
        "Do you agree with that?",
        "I read that somewhere, is it still true?",
        "That is what the old guide said.",
        "That's the ticket title, please implement it.",
        "This is the acceptance criterion of JIRA-12, implement it",
        "<- is that a good system prompt for my bot?",
    ],
)
def test_a_rule_that_the_next_sentence_takes_back_questions_or_gives_to_others_is_asked_about(rest: str) -> None:
    found = statements(f"Always commit directly to main. {rest}")
    assert [tier for tier, text in found if text == "Always commit directly to main."] == ["MEDIUM"]


@pytest.mark.parametrize(
    "rest",
    [
        "That's a rule.",
        "That is what I want.",
        "This is important to me.",
        "Can you fix the hook now?",
        "Is the build green?",
        "Thanks!",
    ],
)
def test_what_else_comes_next_leaves_it_a_rule(rest: str) -> None:
    assert ("HIGH", "Always commit directly to main.") in statements(f"Always commit directly to main. {rest}")


@pytest.mark.parametrize(
    "text",
    [
        "always run the tests before committing is a stupid rule",
        "always ask before deleting files, that's what you promised me!",
        "never push to main, they told me on my first day",
        "always commit directly to main — no wait, ignore that",
        "Always commit directly to main, why not.",
        "right, always break the build on friday evening, brilliant idea",
        "Our convention is broken, always different names.",
        "In this project we use Redux, which was a mistake.",
        "what does this mean? always use prepared statements",
    ],
)
def test_mockery_doubt_and_what_others_said_are_not_saved_unasked(text: str) -> None:
    assert "HIGH" not in {tier for tier, _ in statements(text)}


@pytest.mark.parametrize(
    "text",
    [
        "Always run the linter for the next three commits.",
        "always answer with yes or no to the following questions",
        "never merge my branch before Monday",
        "always deploy to staging first this week",
    ],
)
def test_a_rule_that_ends_soon_is_none(text: str) -> None:
    assert {tier for tier, _ in statements(text)} <= {"LOW"}


@pytest.mark.parametrize(
    "text",
    [
        "Always ask me first before deleting files.",
        "Never deploy on Mondays.",
        "Please remember this for the next sessions: never push to main.",
        "always commit to a branch, this is a rule",
    ],
)
def test_words_like_these_that_say_nothing_against_it_do_no_harm(text: str) -> None:
    assert {tier for tier, _ in statements(text)} & {"HIGH", "MEDIUM"}


def test_what_a_command_of_a_terminal_printed_is_not_saved_unasked() -> None:
    found = statements("$ cat RULES\nalways use spaces\nnever use tabs\n\nhm, who wrote that file?")
    assert "HIGH" not in {tier for tier, _ in found}
    assert ("HIGH", "never use tabs") in statements("$ make lint\nfails.\n\nnever use tabs")
