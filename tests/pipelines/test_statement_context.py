"""A statement holds what it takes to understand it without the message."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.statement_context import LONGEST_REJECTION, only_rejects
from memoryvault.vault.turn import Origin, Role, Turn


def statement_of(text: str) -> str:
    turns = (
        Turn(Role.ASSISTANT, Origin.ASSISTANT, "All tests pass.", "before", "session"),
        Turn(Role.USER, Origin.PROMPT, text, "record", "session", cwd="/home/dev/shop"),
    )
    (found,) = mine(turns)
    return found.statement


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
