"""A line such as "Please remember:" asks to remember each item of the list below it."""

from __future__ import annotations

import pytest

from .test_joined_statements import mined, statements


@pytest.mark.parametrize(
    "heading",
    [
        "Remember:",
        "Please remember the following:",
        "ok, please remember these for later:",
        "Keep in mind:",
        "Save this to memory:",
        "Done with the header.\n\nRemember this:",
    ],
)
@pytest.mark.parametrize("mark", ["- ", "* ", "1. "])
def test_each_item_is_put_to_the_user(heading: str, mark: str) -> None:
    found = statements(f"{heading}\n{mark}Invoices are immutable rows.\n{mark}Deploys go through Argo.\n")
    assert ("MEDIUM", "Invoices are immutable rows.") in found
    assert ("MEDIUM", "Deploys go through Argo.") in found


def test_a_long_list_is_put_to_the_user_whole() -> None:
    facts = [f"Invoices of region {place} are immutable." for place in ("north", "south", "east", "west", "inner")]
    found = statements("Please remember:\n" + "".join(f"- {fact}\n" for fact in facts))
    assert [statement for tier, statement in found if tier == "MEDIUM"] == facts


def test_a_rule_in_the_list_is_saved_as_anywhere_else() -> None:
    found = statements("Remember:\n- Never push on Fridays.\n- Deploys go through Argo.\n")
    assert ("HIGH", "Never push on Fridays.") in found
    assert ("MEDIUM", "Deploys go through Argo.") in found


def test_what_comes_after_the_list_is_not_of_it() -> None:
    found = statements("Remember:\n- Deploys go through Argo.\n\nThe header is blue.\n- The footer is green.\n")
    assert [statement for tier, statement in found if tier == "MEDIUM"] == ["Deploys go through Argo."]


@pytest.mark.parametrize(
    "text",
    [
        "Anna wrote:\nRemember:\n- Deploys go through Argo.",
        "To do:\n- Deploys go through Argo.",
        "Remember:\n- it is broken\n- until Friday the deploys go through Argo",
        "> Remember:\n> - Deploys go through Argo.",
        "```\nRemember:\n- Deploys go through Argo.\n```",
    ],
)
def test_what_somebody_else_listed_or_what_is_of_this_moment_is_not_put_to_the_user(text: str) -> None:
    assert not [statement for tier, statement in statements(text) if tier != "LOW"]


@pytest.mark.parametrize(
    "request_", ["Remember that {}", "Remember: {}", "Save to memory: {}", "Don't forget that {}", "Remember:\n- {}"]
)
def test_a_fact_stays_in_its_project(request_: str) -> None:
    (fact,) = mined(request_.format("staging uses another database."))
    assert (fact.scope, fact.project) == ("project", "shop")


@pytest.mark.parametrize("request_", ["Remember: {}", "Save to memory: {}", "Remember, {}", "Remember:\n- {}"])
def test_what_is_told_of_the_user_holds_in_every_project(request_: str) -> None:
    (fact,) = mined(request_.format("I use fish and no other shell."))
    assert fact.scope == "personal"
