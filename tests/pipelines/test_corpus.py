"""What a whole corpus says: counted over sessions, ranked, bounded."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from memoryvault.pipelines.candidate import CATEGORIES, Candidate, Category
from memoryvault.pipelines.corpus import (
    HEADING,
    MOST_LINES,
    CorpusFigures,
    Pattern,
    Saying,
    digest_body,
    patterns_of,
    select,
)
from memoryvault.pipelines.likeness import LikenessLimits, is_same, wording_of
from memoryvault.pipelines.routing import Thresholds, Tier, tier_of

GUESS = Candidate(
    category="preference",
    statement="The release report reads well as a bullet list",
    reason="a remark",
    role="user",
    records=("r0",),
    excerpt="The release report reads well as a bullet list",
    session="s0",
    score=0.4,
    confirmed=True,
)
RULE = replace(GUESS, statement="Always use pnpm, not npm", standing_rule=True)
CHOICE = replace(GUESS, category="correction", statement="No, put the fixtures beside the test", claimed_rule=True)


def saying(candidate: Candidate, session: str, at: float = 0.0, **changes: Any) -> Saying:
    said = replace(candidate, session=session, records=(f"{session}-{at}",), **changes)
    return Saying(said, "claude", (at, session, 0))


def patterns(*sayings: Saying) -> list[Pattern]:
    return patterns_of(sayings, LikenessLimits(), Thresholds())


def test_what_three_sessions_say_is_medium_and_what_one_says_three_times_is_not() -> None:
    (spread,) = patterns(*(saying(GUESS, f"s{number}", number) for number in range(3)))
    assert (spread.tier, len(spread.sessions)) == (Tier.MEDIUM, 3)
    (alone,) = patterns(*(saying(GUESS, "s1", number) for number in range(3)))
    assert (alone.tier, len(alone.sayings)) == (Tier.LOW, 3)


def test_sayings_in_like_words_are_one_pattern_and_an_opposite_is_another() -> None:
    found = patterns(
        saying(GUESS, "s1"),
        saying(GUESS, "s2", statement="the release report reads well as a bullet list!"),
        saying(GUESS, "s3", statement="The release report never reads well as a bullet list"),
    )
    assert sorted(len(pattern.sayings) for pattern in found) == [1, 2]


def test_a_rule_among_guesses_makes_the_pattern_high_and_gives_its_wording() -> None:
    (pattern,) = patterns(saying(RULE, "s1", 1, standing_rule=False), saying(RULE, "s2", 2))
    assert pattern.tier is Tier.HIGH
    assert pattern.candidate.session == "s2"


def test_a_rule_that_the_user_did_not_type_counts_for_nothing() -> None:
    assert patterns(*(saying(RULE, f"s{number}", number, role="tool") for number in range(5))) == []


def test_the_order_of_mining_does_not_show() -> None:
    chance = random.Random(7)
    subjects = ("reports", "fixtures", "branches", "diagrams", "releases", "changelogs")
    sayings = [
        saying(GUESS, f"s{number % 9}", number, statement=f"keep the {chance.choice(subjects)} short and dated")
        for number in range(60)
    ]
    expected = patterns(*sayings)
    for _ in range(5):
        chance.shuffle(sayings)
        assert patterns(*sayings) == expected


def test_no_like_statement_is_missed_by_comparing_few() -> None:
    chance = random.Random(11)
    words = ["build", "cache", "branch", "review", "release", "fixture", "diagram", "colour", "button", "server"]
    limits = LikenessLimits()
    sayings = [
        saying(GUESS, f"s{number}", number, statement=" ".join(chance.sample(words, 5)) + " matters")
        for number in range(120)
    ]
    leaders: list[Saying] = []
    for each in sayings:
        wording = wording_of(each.candidate.statement)
        if not any(is_same(wording_of(one.candidate.statement), wording, None, limits) for one in leaders):
            leaders.append(each)
    assert len(patterns(*sayings)) == len(leaders)


def test_the_strongest_come_first_and_the_bound_holds_back_the_rest() -> None:
    thrice = [saying(GUESS, f"s{number}", number) for number in range(3)]
    found = patterns(saying(CHOICE, "s4", 4), saying(RULE, "s5", 5), *thrice, saying(GUESS, "s6", 6, statement="Once"))
    assert [pattern.tier for pattern in found] == [Tier.HIGH, Tier.MEDIUM, Tier.MEDIUM, Tier.LOW]
    chosen = select(found, 9, 1, 0)
    assert [pattern.candidate.statement for pattern in chosen.saved] == [RULE.statement]
    assert [pattern.candidate.statement for pattern in chosen.proposed] == [GUESS.statement]
    assert [pattern.candidate.statement for pattern in chosen.held] == [CHOICE.statement, "Once"]
    assert select(found, 9, -3, 0).proposed == ()


def test_more_rules_than_may_be_saved_unasked_are_put_to_the_user_first() -> None:
    rules = [saying(RULE, f"s{n}", n, statement=f"Always run part{n} before you push") for n in range(3)]
    chosen = select(patterns(saying(CHOICE, "s9", 9), *rules), 1, 1, 0)
    assert [len(chosen.saved), len(chosen.proposed), len(chosen.held)] == [1, 1, 2]
    (asked,) = chosen.proposed
    assert (asked.tier, tier_of(asked.candidate)[0]) == (Tier.MEDIUM, Tier.MEDIUM)
    assert [pattern.tier for pattern in chosen.held] == [Tier.HIGH, Tier.MEDIUM]
    assert [pattern.tier for pattern in select(patterns(*rules), -2, 9, 0).proposed] == [Tier.MEDIUM] * 3


def test_ideas_do_not_take_the_room_of_what_waits_for_review() -> None:
    ideas = [
        saying(GUESS, f"s{n}", n, category="idea", statement=f"What if part{n} were cached some day?") for n in range(3)
    ]
    chosen = select(patterns(saying(CHOICE, "s9", 9), *ideas), 9, 1, 2)
    assert [pattern.candidate.category for pattern in chosen.proposed] == ["correction", "idea", "idea"]
    assert len(chosen.held) == 1


def test_the_digest_lists_the_strongest_and_counts_the_others() -> None:
    many = patterns(
        *(saying(GUESS, f"s{n}", n, statement=f"Module{n} <script>\nhas a\nlong name") for n in range(MOST_LINES + 5))
    )
    body = digest_body(many, CorpusFigures(sessions=9, in_vault=3))
    lines = body.splitlines()
    assert lines[0] == HEADING
    assert sum(line.startswith("- [ ] 1× in 1 session (preference): Module") for line in lines) == MOST_LINES
    assert lines[-1] == "and 5 weaker ones, counted but not listed."


@pytest.mark.parametrize("category", CATEGORIES)
def test_what_old_sessions_said_is_ranked_whatever_its_category(category: Category) -> None:
    (pattern,) = patterns(saying(GUESS, "s1", 1, category=category))
    assert pattern.candidate.category == category
