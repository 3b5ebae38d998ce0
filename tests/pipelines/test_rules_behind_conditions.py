"""A rule is not lost because its condition, its matter or the user's anger stands before it."""

from __future__ import annotations

import pytest

from .test_joined_statements import statements


@pytest.mark.parametrize(
    "text",
    [
        "Before deleting any file, always ask me first.",
        "After merging, always delete the branch.",
        "If a test is flaky, never retry it, fix it.",
        "Unless I ask for it, never write comments.",
        "unless i explicitly say so, never run database migrations",
        "Whenever a migration is added, update docs/schema.md as well.",
        "When I type lgtm, merge the PR.",
        "When I say 'ship it', run the tests, commit and push.",
        "In commit messages never mention the ticket.",
        "In PR descriptions, always link the issue.",
        "On feature branches always squash",
        "Commit messages: always in English, max 72 chars",
        "It is important to never block the event loop, so always use async IO.",
        "it would be great if you could always link the file and line when you mention code",
        "um in general i would like you to always write the tests first",
        "Never, I repeat never, run `git reset --hard`.",
        "As a reminder, never use --force.",
        "I told you a hundred times: always run the formatter!",
        "how often do I have to say this: never commit .env",
        "Remember I hate long answers.",
        "That's wrong. Always check the return code of subprocess calls.",
        "This is not ok. Never delete tests to make the build pass.",
    ],
)
def test_the_user_is_asked_at_least(text: str) -> None:
    assert {tier for tier, _ in statements(text)} & {"HIGH", "MEDIUM"}


@pytest.mark.parametrize(
    "text",
    [
        "if we always squash, never mind the history",
        "If the cache never fills, the request fails.",
        "In production we always had nginx",
        "In practice people never use it",
        "When I say nothing, the build still fails.",
        "Remember I had a branch for it?",
        "Whenever the user saves, send a mail",
        "Before deploying, it always prints a warning",
    ],
)
def test_what_only_tells_how_things_are_is_no_rule(text: str) -> None:
    assert {tier for tier, _ in statements(text)} <= {"LOW"}


def test_below_from_now_on_each_item_of_a_list_is_a_rule() -> None:
    listed = "- never use console.log, use the logger\n- commit messages in imperative mood"
    found = statements(f"From now on:\n{listed}\n\nThe header is blue.")
    assert found == [
        ("HIGH", "never use console.log, use the logger"),
        ("MEDIUM", "commit messages in imperative mood"),
    ]


def test_below_the_rules_of_a_project_each_item_is_one() -> None:
    assert ("MEDIUM", "Every PR needs a test.") in statements(
        "Rules for this repo:\n1. Always use pnpm.\n2. Every PR needs a test."
    )


def test_a_list_for_a_while_holds_no_rules() -> None:
    found = statements("From now on, until Friday:\n- commit messages in imperative mood")
    assert {tier for tier, _ in found} <= {"LOW"}
