"""Ideas that are told by their form, and words of later that make none."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.explicit_forms import explicit_forms
from memoryvault.vault.turn import Origin, Role, Turn


def said(text: str) -> list[Candidate]:
    return mine([Turn(Role.USER, Origin.PROMPT, text, "record", "session", cwd="/home/dev/shop", confirmed=True)])


@pytest.mark.parametrize(
    "text",
    [
        "note to self: look into streaming the upload",
        "parking lot: keyboard shortcuts",
        "it'd be neat if the graph showed the last release",
        "wish we had a preview for that",
        "someday I'd want this to run offline",
        "not urgent, but we should compress the backups",
        "we could sync the settings too, but not now",
        "could be fun to let people share their layouts",
        "add it to the wishlist",
    ],
)
def test_a_wish_for_later_is_an_idea_by_its_form(text: str) -> None:
    assert [form.category for form in explicit_forms(text)] == ["idea"]


@pytest.mark.parametrize(
    "text",
    [
        "add a page for the wishlist",
        "at some point it crashes",
        "the job should run later, at three",
        "one day of logs is enough",
        "in v2 the route is gone",
        "it would be good to know why it failed",
        "is this for the next release?",
    ],
)
def test_a_word_of_later_alone_makes_no_idea(text: str) -> None:
    assert explicit_forms(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "implement the first item on the roadmap now",
        "implement the first item on the roadmap",
        "implement the feature request from Bob now",
        "please build the feature request from Bob",
        "follow-up: fix the failing test now",
        "fix what we put into the backlog today",
        "can you run the last one on our wishlist",
        "go ahead, do the stretch goal right away",
        "what is on the roadmap",
    ],
)
def test_an_order_is_no_idea_wherever_the_thing_was_noted(text: str) -> None:
    assert "idea" not in [form.category for form in explicit_forms(text)]
    assert "idea" not in [candidate.category for candidate in said(text)]


@pytest.mark.parametrize(
    "text",
    [
        "add a dark theme to the backlog",
        "that belongs on the roadmap",
        "put the search on our wishlist for now",
        "feature request from Bob: sharing as an image",
        "a feature request from sales, sharing as an image",
        "idea: add a page that shows what is running now",
        "follow-up: measure recall latency",
        "fix the parser now and put the lexer on the backlog",
        "not now, but it would be cool to have a preview",
    ],
)
def test_what_is_put_off_is_an_idea_though_it_is_worded_as_an_order(text: str) -> None:
    assert "idea" in [candidate.category for candidate in said(text)]
