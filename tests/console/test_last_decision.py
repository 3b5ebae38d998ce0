"""The last decision that pages offer to undo."""

import os
import re
import shutil
from typing import Any

import pytest

from memoryvault.pipelines.review import Approve
from memoryvault.tests.review.support import Bed
from memoryvault.vault.entry import Entry

from .support import Front, proposal


def offered(answer: Any) -> str:
    """The decision that the page offers to take back, '' for none."""
    found = re.search(r'name="act" value="([^"]*)"', answer.text)
    return found[1] if found else ""


def decide(bed: Bed, entry: Entry) -> str:
    """In another process, as the command does; the id of its act."""
    reviewer = bed.reviewer
    reviewer.decide(entry.path, Approve(), run=reviewer.journal.new_run("review"))
    act = reviewer.last_decision()
    assert act is not None
    return act.id


@pytest.mark.parametrize("page", ["review", "inbox", "ideas", "watchlist"])
def test_a_page_offers_to_undo_the_last_decision_of_any_process(bed: Bed, front: Front, page: str) -> None:
    first, second = proposal(bed, "one"), proposal(bed, "two")
    proposal(bed, "three")
    assert offered(front.get(page)) == ""
    one = decide(bed, first)
    assert offered(front.get(page)) == one
    two = decide(bed, second)
    assert offered(front.get(page)) == two
    bed.reviewer.undo_last(two)
    assert offered(front.get(page)) == one
    shutil.rmtree(bed.journal.files[0].parent)
    assert offered(front.get(page)) == ""


def test_a_full_journal_that_gave_way_to_a_new_one_is_another_journal(bed: Bed, front: Front) -> None:
    first, second = proposal(bed, "one"), proposal(bed, "two")
    decide(bed, first)
    assert offered(front.get("review"))
    rotated, current = bed.journal.files
    os.replace(current, rotated)
    two = decide(bed, second)
    os.utime(current, ns=(0, rotated.stat().st_mtime_ns))
    assert offered(front.get("review")) == two
