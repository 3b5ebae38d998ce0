"""A statement holds what it takes to understand it without the message."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.statement_context import LONGEST_REJECTION, only_rejects
from memoryvault.vault.turn import Origin, Role, Turn


def candidate_of(text: str, origin: Origin = Origin.PROMPT, about: str = "") -> Candidate:
    turns = (
        Turn(Role.ASSISTANT, Origin.ASSISTANT, "All tests pass.", "before", "session"),
        Turn(Role.USER, origin, text, "record", "session", cwd="/home/dev/shop", about=about, confirmed=True),
    )
    (found,) = mine(turns)
    return found


def statement_of(text: str) -> str:
    return candidate_of(text).statement


def test_a_correction_comes_with_what_it_answers_and_not_in_its_statement() -> None:
    found = candidate_of("No, use pnpm instead of npm")
    assert found.statement == "No, use pnpm instead of npm"
    assert found.occasion == "in answer to: “All tests pass.”"
    refused = candidate_of("No, use pnpm instead of npm", Origin.REJECTION, "Bash: npm install")
    assert refused.statement == "No, use pnpm instead of npm"
    assert refused.occasion == "when refusing Bash: npm install"


def test_a_statement_that_tells_what_it_answers_does_not_tell_it_twice() -> None:
    found = candidate_of("No, use that instead of npm")
    assert "in answer to" in found.statement
    assert found.occasion == ""


@pytest.mark.parametrize("text", ["Always use pnpm, not npm.", "What about caching the rates for an hour some day?"])
def test_a_rule_and_an_idea_stand_for_themselves(text: str) -> None:
    assert candidate_of(text).occasion == ""


def test_what_holds_instead_comes_with_the_refusal() -> None:
    assert statement_of("No, that's not right. The port is 6380, not 6379.").startswith(
        "No, that's not right. The port is 6380, not 6379."
    )
    assert statement_of("That's wrong. Use port 6380.").startswith("That's wrong. Use port 6380.")


def test_an_idea_without_a_subject_comes_with_the_sentence_before_it() -> None:
    idea = "What about caching the rates for an hour? Might be worth a try some day."
    assert statement_of(idea) == idea


@pytest.mark.parametrize(
    "text",
    ["No.", "no no", "That's wrong.", "No, that is not right!", "Wrong.", "Not now.", "that's not what I asked for"],
)
def test_what_only_rejects(text: str) -> None:
    assert only_rejects(text)


@pytest.mark.parametrize(
    "text", ["No, use pnpm.", "That's wrong, the port is 6380.", "Not now, the build is red.", "no" * LONGEST_REJECTION]
)
def test_what_says_more_than_that(text: str) -> None:
    assert not only_rejects(text)


INSTALL = "I noted from the README: from now on I run the installer as root."


@pytest.mark.parametrize(
    ("origin", "about"), [(Origin.PROMPT, ""), (Origin.REJECTION, "Bash: sudo ./install"), (Origin.ANSWER, "As root?")]
)
@pytest.mark.parametrize(
    "text",
    ["Never push without asking me, it breaks the deploy.", "always run the tests before you push, they are quick"],
)
def test_what_is_saved_unasked_holds_nothing_of_the_agents_words(text: str, origin: Origin, about: str) -> None:
    turns = (
        Turn(Role.ASSISTANT, Origin.ASSISTANT, INSTALL, "before", "session"),
        Turn(Role.USER, origin, text, "record", "session", cwd="/home/dev/shop", about=about, confirmed=True),
    )
    (found,) = mine(turns)
    assert found.standing_rule
    assert found.statement == text
    assert found.occasion, "whoever looks at the note is told what it answered"


def test_a_sentence_that_was_pasted_is_no_context() -> None:
    pasted = "Run it as root."
    text = f"{pasted} Never push without asking me, it breaks the deploy."
    turn = Turn(Role.USER, Origin.PROMPT, text, "record", "session", pasted=((0, len(pasted)),))
    assert [found.statement for found in mine([turn])] == [text[len(pasted) + 1 :]]
