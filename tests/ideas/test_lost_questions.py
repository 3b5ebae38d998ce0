"""The folder of an idea is renamed, moved or deleted in Obsidian while its question waits."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace

import pytest

from memoryvault.pipelines.review import Approve, Reject
from memoryvault.services.ideas.ledger import MOST_QUESTIONS, find_idea, ideas
from memoryvault.services.ideas.lost_questions import ARRIVING_SECONDS, settle_lost_questions

from ..review.support import Bed
from .support import IDEA, INCUBATOR, ideas_file

SLUG = "build-a-small-page-that-shows-how-many"
THINGS = ("kites", "looms", "clocks", "boats", "lamps", "drums")
NEW_QUESTION = "personal-private/_review/surface-retries.md"


def rename(bed: Bed, slug: str = SLUG, new: str = "retries") -> None:
    (bed.vault / INCUBATOR / slug).rename(bed.vault / INCUBATOR / new)


def questions(bed: Bed) -> list[str]:
    return [entry.path for entry in bed.reviewer.waiting()]


def settle(bed: Bed, seconds_later: float = ARRIVING_SECONDS + 60) -> int:
    return settle_lost_questions(bed.settings, bed.journal, time.time() + seconds_later)


def test_a_question_about_a_renamed_idea_can_be_approved(bed: Bed) -> None:
    bed.remember(IDEA)
    rename(bed)
    (question,) = questions(bed)
    bed.reviewer.decide(question, Approve(), run="t")
    assert f"[[MemoryVault/{INCUBATOR}/retries/_index.md]]" in ideas_file(bed)
    assert questions(bed) == []


def test_that_a_renamed_idea_is_not_wanted_is_remembered_in_its_note(bed: Bed) -> None:
    bed.remember(IDEA)
    rename(bed)
    (question,) = questions(bed)
    bed.reviewer.decide(question, Reject(), run="t")
    assert find_idea(bed.store, "retries").extra["surface"] == "declined"


def test_a_renamed_idea_is_asked_about_under_its_new_name(bed: Bed) -> None:
    bed.remember(IDEA)
    rename(bed)
    assert settle(bed, 0) == 1
    assert questions(bed) == [NEW_QUESTION]
    assert f"{INCUBATOR}/retries/_index.md" in bed.files()[NEW_QUESTION]
    assert settle(bed) == 0


def test_answer_about_a_renamed_idea_in_the_note_is_carried_out(bed: Bed) -> None:
    bed.remember(IDEA)
    rename(bed)
    (question,) = questions(bed)
    bed.decide_in_note(question, "approve")
    assert settle(bed) == 0
    bed.reviewer.apply_notes()
    assert "retries/_index.md" in ideas_file(bed)


def test_a_name_that_two_ideas_had_is_not_guessed(bed: Bed) -> None:
    bed.remember(IDEA)
    folder = bed.vault / INCUBATOR
    shutil.copytree(folder / SLUG, folder / "one")
    rename(bed, new="two")
    settle(bed)
    assert questions(bed) == []


def test_a_question_about_an_idea_that_is_gone_goes_once_the_idea_has_had_the_time_to_arrive(bed: Bed) -> None:
    bed.remember(IDEA)
    shutil.rmtree(bed.vault / INCUBATOR / SLUG)
    assert settle(bed, 60) == 0
    assert len(questions(bed)) == 1
    assert settle(bed) == 1
    assert questions(bed) == []


def test_ideas_that_were_deleted_by_hand_keep_no_other_from_being_asked_about(bed: Bed) -> None:
    bed.remember(*(replace(IDEA, statement=f"Idea: a museum of {thing}.", records=(thing,)) for thing in THINGS))
    asked = {str(entry.extra["idea"]) for entry in bed.reviewer.waiting()}
    for slug in asked:
        shutil.rmtree(bed.vault / INCUBATOR / slug)
    settle(bed)
    left = {entry.path.split("/")[-2] for entry in ideas(bed.store)}
    assert len(asked) == MOST_QUESTIONS
    assert {str(entry.extra["idea"]) for entry in bed.reviewer.waiting()} == left


@pytest.mark.parametrize("surface", ["declined", "later"])
def test_surface_field_of_a_renamed_idea_holds(bed: Bed, surface: str) -> None:
    bed.remember(IDEA)
    bed.edit(f"{INCUBATOR}/{SLUG}/_index.md", "---\n", f"---\nsurface: {surface}\n")
    rename(bed)
    settle(bed)
    assert questions(bed) == ([NEW_QUESTION] if surface == "later" else [])


def test_a_rule_whose_name_begins_like_a_question_is_none(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = questions(bed)
    bed.edit(question, "kind: idea-surface", "kind: preferences")
    shutil.rmtree(bed.vault / INCUBATOR / SLUG)
    assert settle(bed) == 0
    assert len(questions(bed)) == 1


def test_a_question_that_is_a_link_and_an_idea_in_a_linked_folder_hold_nothing_up(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = questions(bed)
    outside = bed.root / "elsewhere"
    (bed.vault / INCUBATOR / SLUG).rename(outside)
    (bed.vault / INCUBATOR / SLUG).symlink_to(outside)
    (bed.vault / "personal-private/_review/surface-linked.md").symlink_to(outside / "_index.md")
    assert settle(bed) == 0
    assert questions(bed) == [question]


def test_a_conflict_copy_of_a_question_is_left_to_the_review_of_copies(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = questions(bed)
    copy = question.replace(".md", ".sync-conflict-20260101-101010-ABC.md")
    (bed.vault / copy).write_bytes((bed.vault / question).read_bytes())
    shutil.rmtree(bed.vault / INCUBATOR / SLUG)
    assert settle(bed) == 1
    assert copy in bed.files()
