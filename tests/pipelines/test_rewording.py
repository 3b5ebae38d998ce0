"""Rules that are framed in other words than the forms know, and what is framed alike but is no rule of the user's."""

from __future__ import annotations

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.mining import mine
from memoryvault.pipelines.mining.rewording import in_known_words
from memoryvault.pipelines.routing import Tier, tier_of
from memoryvault.vault.turn import Origin, Role, Turn


def said(text: str) -> list[Candidate]:
    return mine([Turn(Role.USER, Origin.PROMPT, text, "record", "session", cwd="/home/dev/shop", confirmed=True)])


def tiers(text: str) -> set[Tier]:
    return {tier_of(candidate)[0] for candidate in said(text)}


SAVED = """
alwyas use uv, never pip
Nevr push to a release branch.
form now on use tabs
from here on out, use conventional commits
from today on never edit the changelog by hand
Starting now, write commit messages in English
from now on pls run the linter first
never, and I mean never, push on a Friday
do not, ever, commit generated files
don't you ever push to main
be concise, always
always quote paths in shell scripts
As a rule of thumb, always update the docs in the same commit
This is important: never commit tokens
never again skip the tests
Quick note before we continue: never touch the vendor folder without asking me
One more thing - always run the type checker before you commit
Before I forget: never delete a branch without asking
I changed my mind: never squash commits
on second thought, always squash commits
House rule: no merge commits
new rule: one topic per commit
It's a hard rule here that we squash commits before merging
Permanent instruction: use the logger, never print().
Let's agree on this: you never bump a dependency without my approval.
make it a habit to read the failing test before you change the code
For next time: don't retry tests to make them pass.
In all future sessions, write comments in English.
use conventional commits in all future sessions
Can you please always use rg instead of grep?
please could you never use emojis in commit messages
I prefer that you always explain the cause before you fix a bug.
You are never allowed to run terraform apply
you must not edit generated files by hand, ever
whenever you rename a module you must update the imports
before you push, always run make check
Never squash commits that are already published
I don't ever want to see a debug.print left in code you hand me
Ask before you add a new dependency.
ok so the build is green again, thanks. Going forward, please keep summaries short.
When writing shell scripts, always use set -e.
ok three rules: always use ripgrep, never use grep, and always quote variables in bash
Whenever you finish a task, summarize what you changed.
It's important that you never log tokens
"""

ASKED = """
Always start the game with three lives
Rule: send a mail when the order ships
rule: use the cheapest carrier
Policy: keep backups for 30 days
House rules: add two chips each round
Let's agree on this: use websockets for the chat
No ads, ever.
For every new endpoint you must write an integration test.
in all future work tests live next to the source file
when in doubt, ask instead of guessing
Can you please always show the total in the header?
Fix the login test. Never mock the clock.
always use the old parser, that worked so well
In SQL, always qualify the column names.
Whenever a dependency is outdated, tell me before you change anything.
I'm colour-blind, so never rely on red and green in charts.
Write docs in Markdown, never in rst.
Let's always write the changelog entry in the same commit.
Let's use pytest for everything from now on, OK?
can you always run black before committing?
Can you always run black before committing
could you from now on use pnpm?
can you use pnpm from now on?
can you run the tests before every commit?
will you always ask before deleting files?
never push to main, alright?
let's never push on a Friday
When saving the form, always show the banner.
"""

LEFT = """
for next time: have a look at the logs
one thing: the tests fail
it crashes, always
the tests fail, always
Add a rule: never allow trailing commas
There is no such rule.
Validation rule: never accept negative numbers
can you always rely on that?
can you always trust the cache?
can you always get the id from the header?
would you always rebase here?
could we always use utf-8?
should we always squash, ok?
from now on the tests fail, ok?
can you please explain why it never returns?
never read the file before editing it, huh
never let facts get in your way, why don't you
the note says never again
in that case, always retry
let's never mind the warnings
I restarted it, so never mind
it's important that it never blocks
"""
"""Ideas, orders of this moment, questions and mockery."""


@pytest.mark.parametrize("text", SAVED.strip().splitlines())
def test_a_rule_is_saved_whatever_announces_it(text: str) -> None:
    found = said(text)
    assert Tier.HIGH in {tier_of(candidate)[0] for candidate in found}
    assert all(candidate.statement in text for candidate in found), "it is quoted, not reworded"


def test_what_only_opens_a_rule_is_no_part_of_it() -> None:
    (found,) = said("hey! One more thing before we start: never touch the vendor folder without asking me")
    assert found.statement == "never touch the vendor folder without asking me"
    assert found.title == "Never touch the vendor folder without asking me"
    (again,) = said("I changed my mind: always squash commits")
    assert again.statement == "always squash commits"
    assert "changed my mind" in again.excerpt


@pytest.mark.parametrize(
    "text",
    [
        "I changed my mind about tabs, always use them.",
        "I have changed my mind on emojis; never add any.",
        "Forget what I said about docstrings: always write them.",
    ],
)
def test_what_says_what_a_rule_is_about_is_part_of_it(text: str) -> None:
    assert [found.statement for found in said(text)] == [text]


@pytest.mark.parametrize("text", ASKED.strip().splitlines())
def test_what_may_be_a_rule_of_the_program_or_of_somebody_is_put_to_the_user(text: str) -> None:
    assert tiers(text) == {Tier.MEDIUM}


@pytest.mark.parametrize("text", LEFT.strip().splitlines())
def test_what_only_opens_like_a_rule_is_none(text: str) -> None:
    assert not tiers(text) & {Tier.HIGH, Tier.MEDIUM}


@pytest.mark.parametrize(
    "text",
    [
        "Never push to main.",
        "Remember that staging uses another database.",
        "for future reference: staging is on port 8081",
        "a note on the rule of thumb",
        "",
    ],
)
def test_what_is_in_known_words_stays_as_it_is(text: str) -> None:
    assert in_known_words(text) == text
