"""The heading that a candidate gets says what its statement says."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate


@pytest.mark.parametrize(
    ("statement", "title"),
    [
        ("no emojis in commit messages", "No emojis in commit messages"),
        ("good commit messages have a body", "Good commit messages have a body"),
        ("no, never push without asking", "Never push without asking"),
        ("Great. And now: let's log it.", "Let's log it"),
        ("yeah, yes please - add a page", "Add a page"),
        ("hmm... ok so use pnpm", "Use pnpm"),
        ("Good.", "Good"),
        ("right-click opens the menu", "Right-click opens the menu"),
        ("now.js files are generated", "Now.js files are generated"),
    ],
)
def test_only_what_opens_a_statement_and_says_nothing_is_left_out(statement: str, title: str) -> None:
    assert Candidate("preference", statement, "r", "user", ("r1",), statement, "s1").title == title


@pytest.mark.parametrize(
    ("statement", "title"),
    [
        ("idea: we could show the retries of a day", "We could show the retries of a day"),
        ("ok, another idea: a dark mode", "A dark mode"),
        ("New idea — a museum of kites", "A museum of kites"),
        ("Future idea - a kite shop", "A kite shop"),
        ("TODO idea: nightly backups", "Nightly backups"),
        ("Idea:", "Idea:"),
        ("Ideas are cheap, so let's list them", "Ideas are cheap, so let's list them"),
    ],
)
def test_the_label_of_an_idea_is_left_out_of_its_heading(statement: str, title: str) -> None:
    assert Candidate("idea", statement, "r", "user", ("r1",), statement, "s1").title == title
    preference = Candidate("preference", "Idea: tabs", "r", "user", ("r1",), "x", "s1")
    assert preference.title == "Idea: tabs"
