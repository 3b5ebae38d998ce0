"""The heading that a candidate gets says what its statement says."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate, Category


@pytest.mark.parametrize(
    ("category", "statement", "title"),
    [
        ("preference", "no emojis in commit messages", "No emojis in commit messages"),
        ("preference", "good commit messages have a body", "Good commit messages have a body"),
        ("preference", "no, never push without asking", "Never push without asking"),
        ("preference", "Great. And now: let's log it.", "Let's log it"),
        ("preference", "yeah, yes please - add a page", "Add a page"),
        ("preference", "hmm... ok so use pnpm", "Use pnpm"),
        ("preference", "Good.", "Good"),
        ("preference", "looks good. btw we squash", "We squash"),
        ("preference", "no we dont write raw sql", "We dont write raw sql"),
        ("preference", "right-click opens the menu", "Right-click opens the menu"),
        ("preference", "now.js files are generated", "Now.js files are generated"),
        ("preference", "Idea: tabs", "Idea: tabs"),
        ("idea", "idea: we could show the retries of a day", "We could show the retries of a day"),
        ("idea", "ok, another idea: a dark mode", "A dark mode"),
        ("idea", "New idea — a museum of kites", "A museum of kites"),
        ("idea", "Future idea - a kite shop", "A kite shop"),
        ("idea", "TODO idea: nightly backups", "Nightly backups"),
        ("idea", "Idea:", "Idea:"),
        ("idea", "Ideas are cheap, so let's list them", "Ideas are cheap, so let's list them"),
    ],
)
def test_only_what_opens_a_statement_and_says_nothing_is_left_out(
    category: Category, statement: str, title: str
) -> None:
    assert Candidate(category, statement, "r", "user", ("r1",), statement, "s1").title == title
