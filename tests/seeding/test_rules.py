"""Which sentences of a file are rules."""

import pytest

from memoryvault.pipelines.seeding import decision_in, grade, memory_in, rules_in

INSTRUCTIONS = """\
---
Always: frontmatter
---
# Shop

## Overview

The API lives in `cmd/api`. The web client is old and nobody should be surprised by it at all here.

## Style

Use tabs, never spaces. Prefer small functions
over clever ones.

<!-- Never tell anybody. -->

```
always do this
```

> Always quote.

- [ ] Run the linter before you commit.
- See [the guide](docs/guide.md)
- Use tabs, never spaces.
"""


def test_rules_are_told_from_prose_code_comments_links_and_tables() -> None:
    found = rules_in(INSTRUCTIONS)
    assert [(one.statement, one.line, one.heading) for one in found] == [
        ("Use tabs, never spaces.", 12, "Style"),
        ("Run the linter before you commit.", 23, "Style"),
        ("Prefer small functions over clever ones.", 12, "Style"),
    ]


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("Never push to main without asking.", "Pushing to main happens on Tuesdays."),
        ("You must run the linter before each commit.", "Prefer short commit messages."),
        ("Prefer pnpm over npm here.", "The package manager here is pnpm."),
    ],
)
def test_an_order_ranks_above_advice_and_advice_above_a_description(stronger: str, weaker: str) -> None:
    assert grade(stronger)[0] > grade(weaker)[0]


@pytest.mark.parametrize(
    ("rule", "description"),
    [
        ("Tabs in Makefiles, not spaces.", "Tabs are in the Makefiles."),
        ("Only merge when CI is green.", "We merge when CI is green."),
        ("Mail the team before every release.", "The team was mailed about the release."),
    ],
)
def test_a_contrast_or_a_condition_makes_a_rule_of_it(rule: str, description: str) -> None:
    assert [one.statement for one in rules_in(f"# Shop\n\n- {rule}\n- {description}\n")] == [rule]


def decision(status: str = "Accepted") -> str:
    return (
        f"# ADR 0003: Use SQLite\n\n## Status\n\n{status}\n\n## Decision\n\nOne SQLite file.\nOne machine.\n\n"
        "More.\n\n## Consequences\n\nNone.\n"
    )


def test_a_decision_record_gives_its_title_and_what_was_decided() -> None:
    found = decision_in(decision())
    assert found is not None
    assert (found.kind, found.statement) == ("decision", "Use SQLite: One SQLite file. One machine.")


def test_a_record_without_a_section_of_its_own_gives_what_comes_first() -> None:
    found = decision_in("# 4. Small model first\n\nStatus: accepted\n\n- The **small** model\n  serves.\n- More.\n")
    assert found is not None
    assert found.statement == "Small model first: The **small** model serves."
    assert decision_in("# 4. Only a title\n\nStatus: accepted\n") is None


@pytest.mark.parametrize("status", ["Proposed", "Superseded by ADR 9", "rejected", "Deprecated"])
def test_a_decision_that_is_not_in_force_gives_nothing(status: str) -> None:
    assert decision_in(decision(status)) is None
    assert decision_in(f"- Status: {status}\n" + decision("")) is None


@pytest.mark.parametrize(
    "header",
    [
        "name: x\ndescription: Emoji in reviews\ntype: feedback",
        "description: Emoji in reviews\nmetadata:\n  type: user",
    ],
)
def test_an_agents_note_is_read_in_every_generation(header: str) -> None:
    found = memory_in(f"---\n{header}\n---\n\nUse them.\n\n**Why:** fun.\n")
    assert found is not None
    assert (found.kind, found.statement) == ("preferences", "Emoji in reviews")
    assert "**Why:** fun." in found.detail
    assert memory_in("# Notes without a header\n") is None
