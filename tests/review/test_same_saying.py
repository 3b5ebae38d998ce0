"""An occurrence is identified by its words and its time, not by the id of its record."""

from dataclasses import replace
from pathlib import Path

import pytest

from memoryvault.tests.review.support import GUESS, RULE, Bed, make_bed


def test_a_copy_in_a_fork_has_another_id_and_the_same_time(bed: Bed) -> None:
    first = replace(GUESS, said_at="2026-03-01T10:00:00Z")
    for n in range(4):
        bed.remember(replace(first, session=f"s{n}", records=(f"r{n}",)))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("inbox", 1)
    for n in range(4, 6):
        bed.remember(replace(first, session=f"s{n}", records=(f"r{n}",), said_at=f"2026-03-0{n}T10:00:00Z"))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("pending", 3)


def test_the_same_words_again_in_a_session_are_no_further_saying(bed: Bed) -> None:
    for n in range(4):
        bed.remember(replace(RULE, records=(f"r{n}",), said_at=f"2026-03-01T10:0{n}:00Z"))
    (rule,) = bed.entries()
    assert (rule.status, rule.occurrences) == ("active", 1)


@pytest.mark.parametrize(
    "mark", ["[2026-09-01T10:{0:02}:00Z] ", "Run {0}: ", "#{0}: ", "10:{0:02} ", "({0}/40) ", "[{0}] "]
)
def test_a_loop_that_numbers_its_line_says_it_once(bed: Bed, mark: str) -> None:
    for n in range(10, 20):
        line = f"{mark.format(n)}always check the deploy log and fix errors"
        bed.remember(replace(GUESS, statement=line, excerpt=line, records=(f"r{n}",)))
    (waiting,) = bed.entries()
    assert (waiting.status, waiting.occurrences) == ("inbox", 1)


def test_a_number_within_the_rule_is_a_part_of_it(bed: Bed) -> None:
    for n in (2, 4):
        bed.remember(replace(GUESS, statement=f"indent with {n} spaces in yaml", records=(f"r{n}",)))
    assert len(bed.entries()) == 2


def test_proposal_is_saved_once_the_host_confirms_that_it_was_typed(bed: Bed) -> None:
    bed.remember(replace(RULE, confirmed=False))
    (waiting,) = bed.entries()
    assert waiting.status == "pending"
    bed.remember(replace(RULE, records=("r2",)))
    (rule,) = bed.entries()
    assert rule.status == "active"


@pytest.mark.parametrize("mode", ["interactive", "auto", "silent"])
def test_no_review_mode_saves_an_unconfirmed_rule(tmp_path: Path, mode: str) -> None:
    bed = make_bed(tmp_path, MEMORY_REVIEW_MODE=mode)
    bed.remember(replace(RULE, confirmed=False))
    (entry,) = bed.entries()
    assert entry.status in ("pending", "inbox")
