"""A runaway session must not bury the statements of others."""

from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.pipelines.routing import Action, Tier, beyond_limit

from .support import CHOICE, GUESS, RULE, make_bed

SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


def guesses(count: int, session: str = "s1") -> list[Candidate]:
    """As different from each other as words can be."""
    return [
        replace(
            GUESS,
            statement=" ".join(SYLLABLES[(n * 7 + k * 11) % 70] + SYLLABLES[(n + k * 13) % 70] for k in range(4)),
            records=(f"{session}-{n}",),
            session=session,
            score=round(0.5 + n / 1000, 3),
        )
        for n in range(count)
    ]


def test_the_surest_make_entries_and_a_rule_always_does() -> None:
    unsure = guesses(3)
    candidates = [unsure[0], RULE, unsure[1], replace(CHOICE, score=0.1), unsure[2]]
    assert beyond_limit(candidates, waiting=0, limit=2) == {0, 2}
    assert beyond_limit(candidates, waiting=1, limit=2) == {0, 2, 4}
    assert beyond_limit(candidates, waiting=9, limit=2) == {0, 2, 3, 4}
    assert beyond_limit(candidates, waiting=9, limit=0) == frozenset()


@pytest.mark.slow
def test_one_session_fills_no_more_than_its_share_however_often_it_is_mined(tmp_path: Path) -> None:
    bed = make_bed(tmp_path)
    candidates = [*guesses(60), RULE]
    first = bed.remember(*candidates)
    assert (first.counts["inboxed"], first.counts["over_limit"], first.counts["saved"]) == (40, 20, 1)
    kept = {one.candidate.records for one in first.routed if one.action is Action.WRITE and one.tier is Tier.LOW}
    assert kept == {(f"s1-{n}",) for n in range(20, 60)}
    before = bed.files()
    again = bed.remember(*candidates)
    assert again.counts == {"known": 41, "over_limit": 20}
    assert bed.files() == before
    later = bed.remember(*[replace(one, records=(f"late-{n}",)) for n, one in enumerate(guesses(80)[70:])])
    assert later.counts == {"over_limit": 10}
    assert bed.remember(*guesses(5, "s2")).counts.get("over_limit") is None


@pytest.mark.slow
def test_after_a_crash_the_same_ones_are_written(tmp_path: Path) -> None:
    bed = make_bed(tmp_path)
    candidates = guesses(50)
    bed.remember(*candidates[30:50])  # all that was written before the crash
    bed.remember(*candidates)
    assert len(bed.entries()) == 40
    records = {record for entry in bed.entries() for source in entry.sources for record in source.records}
    assert records == {f"s1-{n}" for n in range(10, 50)}
