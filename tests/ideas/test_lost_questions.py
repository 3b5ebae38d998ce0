"""The folder of an idea is renamed or deleted in Obsidian while its question waits."""

import shutil

import pytest

from memoryvault.pipelines.review import Approve, Reject
from memoryvault.runtime.errors import EntryNotFound
from memoryvault.services.ideas.ledger import find_idea

from ..review.support import Bed
from .support import IDEA, INCUBATOR

SLUG = "build-a-small-page-that-shows-how-many"


def rename(bed: Bed, slug: str = SLUG, new: str = "retries") -> None:
    (bed.vault / INCUBATOR / slug).rename(bed.vault / INCUBATOR / new)


def questions(bed: Bed) -> list[str]:
    return [entry.path for entry in bed.reviewer.waiting()]


def test_that_a_renamed_idea_is_not_wanted_is_remembered_in_its_note(bed: Bed) -> None:
    bed.remember(IDEA)
    rename(bed)
    (question,) = questions(bed)
    bed.reviewer.decide(question, Reject(), run="t")
    assert find_idea(bed.store, "retries").extra["surface"] == "declined"


def test_a_question_about_an_idea_that_is_gone_can_only_be_rejected(bed: Bed) -> None:
    bed.remember(IDEA)
    shutil.rmtree(bed.vault / INCUBATOR / SLUG)
    (question,) = questions(bed)
    with pytest.raises(EntryNotFound, match="there is no idea"):
        bed.reviewer.decide(question, Approve(), run="t")
    bed.reviewer.decide(question, Reject(), run="t")
    assert questions(bed) == []
