"""A folder of an idea that the user renamed in Obsidian works like any other."""

import os
import shutil

import pytest

from memoryvault.pipelines.incubation import Answer, listed
from memoryvault.pipelines.review import Approve, Reject
from memoryvault.runtime.errors import EntryInvalid, EntryNotFound
from memoryvault.runtime.paths import check_new_name
from memoryvault.services.ideas.archive import promote, purge_trash, put_away, restore
from memoryvault.services.ideas.incubator import refresh_list
from memoryvault.services.ideas.ledger import IDEA_TRASH, find_idea, idea_folder, surface
from memoryvault.services.reviewing import DecisionOutcome
from memoryvault.vault.pending import IDEAS_LIST, question_path

from ..review.support import Bed
from .support import IDEA, INCUBATOR, ideas_file, old_idea, write_down

pytestmark = pytest.mark.slow

NAMES = [
    "Retry page (v2)",
    "Повторы",
    "今後",
    "a.b",
    'it\'s = "mine"; keep, delete',
    "Émile 🎉",
    "C# [v2] a|b",
    "x" * 199,
]


@pytest.mark.parametrize("name", NAMES)
def test_an_idea_in_a_renamed_folder_is_put_away_comes_back_and_becomes_a_project(bed: Bed, name: str) -> None:
    old = write_down(bed, "Retry page").path.split("/")[-2]
    listed_before = ideas_file(bed)
    (bed.vault / INCUBATOR / old).rename(bed.vault / INCUBATOR / name)
    bed.settings.ideas_path.write_text(listed_before.replace(f"/{old}/", f"/{name}/"), "utf-8")  # As Obsidian does.
    listed_before = ideas_file(bed)
    assert find_idea(bed.store, name).title == "Retry page"
    for answer in (Answer.KEEP, Answer.ARCHIVE, Answer.DELETE):
        done = put_away(bed.journal, name, answer, run="t", actor="idea", ideas_file=bed.settings.ideas_path)
        assert done.path in bed.files()
        if answer is Answer.DELETE:
            assert IDEA_TRASH in ideas_file(bed)
        if answer is not Answer.KEEP:
            restore(bed.journal, name, ideas_file=bed.settings.ideas_path)
        assert ideas_file(bed) == listed_before
    project = promote(bed.journal, name, ideas_file=bed.settings.ideas_path).path
    assert project in bed.files()
    assert f"[[MemoryVault/{project}]]" in ideas_file(bed)


def test_the_project_of_a_renamed_idea_has_a_name_that_projects_may_have(bed: Bed) -> None:
    write_down(bed, "Retry page")
    (bed.vault / INCUBATOR / "retry-page").rename(bed.vault / INCUBATOR / "Retry page (v2)")
    assert promote(bed.journal, "Retry page (v2)").path == "personal-projects/retry-page-v2/_index.md"


@pytest.mark.parametrize("name", NAMES)
def test_ideas_in_renamed_folders_are_listed_and_answered_with_the_others(bed: Bed, name: str) -> None:
    for slug in ("one", "two", "three"):
        old_idea(bed, slug, 400)
    (bed.vault / INCUBATOR / "two").rename(bed.vault / INCUBATOR / name)
    assert {idea.slug for idea in refresh_list(bed.settings, bed.journal)} == {"one", name, "three"}
    before = bed.files()[IDEAS_LIST]
    refresh_list(bed.settings, bed.journal)
    assert bed.files()[IDEAS_LIST] == before
    assert set(listed(bed.store.read(IDEAS_LIST).body)) == {"one", name, "three"}
    bed.reviewer.answer(IDEAS_LIST, {name: Answer.DELETE, "one": Answer.ARCHIVE}, run="t")
    assert set(listed(bed.store.read(IDEAS_LIST).body)) == {"three"}
    assert purge_trash(bed.store) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_renamed_idea_is_asked_about_and_answered(bed: Bed, name: str) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    (bed.vault / INCUBATOR / str(question.extra["idea"])).rename(bed.vault / INCUBATOR / name)
    decided = bed.reviewer.decide(question.path, Approve(), run="t")
    assert isinstance(decided, DecisionOutcome)
    assert f"/{name}/_index.md]]" in ideas_file(bed)
    assert surface(bed.settings, bed.journal, name, run="t") == decided.path


def test_that_a_renamed_idea_is_not_wanted_is_remembered_in_its_note(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    (bed.vault / INCUBATOR / str(question.extra["idea"])).rename(bed.vault / INCUBATOR / "retries")
    bed.reviewer.decide(question.path, Reject(), run="t")
    assert find_idea(bed.store, "retries").extra["surface"] == "declined"


def test_a_question_about_an_idea_that_is_gone_can_only_be_rejected(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    shutil.rmtree(bed.vault / INCUBATOR / str(question.extra["idea"]))
    with pytest.raises(EntryNotFound, match="there is no idea"):
        bed.reviewer.decide(question.path, Approve(), run="t")
    bed.reviewer.decide(question.path, Reject(), run="t")
    assert bed.reviewer.waiting() == []


def test_that_a_renamed_idea_was_listed_is_taken_back_from_a_list_that_was_edited_since(bed: Bed) -> None:
    bed.remember(IDEA)
    (question,) = bed.reviewer.waiting()
    (bed.vault / INCUBATOR / str(question.extra["idea"])).rename(bed.vault / INCUBATOR / "What now?")
    bed.reviewer.decide(question.path, Approve(), run="t")
    bed.settings.ideas_path.write_text("Mine.\n\n" + ideas_file(bed), "utf-8")
    bed.reviewer.undo_last()
    assert "What now?" not in ideas_file(bed)
    assert "Mine." in ideas_file(bed)


def test_two_names_that_differ_in_what_not_every_disk_stores_have_a_question_each() -> None:
    paths = {question_path(slug) for slug in ("What now?", "What now*", "What now-", "今" * 66, "今" * 65 + "後")}
    assert len(paths) == 5
    for path in paths:
        check_new_name(path)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", "_archive", ".hidden", "a\nb", "a\0b", "x" * 201]
)
def test_invalid_folder_name_of_an_idea_is_refused(name: str) -> None:
    with pytest.raises(EntryInvalid, match="is no name of a folder or note"):
        idea_folder(name)


def test_a_folder_that_no_command_can_name_keeps_no_other_idea_from_being_listed(bed: Bed) -> None:
    old_idea(bed, "one", 400)
    for number, name in enumerate((b"bad\xff", b"a\nb", b"x" * 220)):
        old_idea(bed, f"two-{number}", 400)
        (bed.vault / INCUBATOR / f"two-{number}").rename(os.fsdecode(os.fsencode(bed.vault / INCUBATOR) + b"/" + name))
    assert [idea.slug for idea in refresh_list(bed.settings, bed.journal)] == ["one"]
