"""A statement about "this" project in two projects is a rule for each of them, and for no other."""

import pytest

from memoryvault.pipelines.candidate import Candidate
from memoryvault.services.triaging import run_triage

from .support import RULE, Bed, said

SQUASH = "In this repo, never squash commits."
NOTE = "preferences/never-squash-commits.md"


def of(project: str, session: str, statement: str = SQUASH, base: Candidate = RULE) -> Candidate:
    return said(base, session, statement, scope="project", project=project)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (SQUASH, SQUASH),
        ("We never mock the clock here.", "We never mock the clock here."),
        ("Our app always answers in JSON.", "Our app always answers in JSON."),
    ],
)
def test_each_of_two_projects_has_its_own_note(bed: Bed, first: str, second: str) -> None:
    bed.remember(of("shop", "a", first))
    bed.remember(of("blog", "b", second))
    assert sorted(entry.project or "everywhere" for entry in bed.entries()) == ["blog", "shop"]


def test_said_again_in_its_project_it_strengthens_the_note_of_that_one(bed: Bed) -> None:
    bed.remember(of("shop", "a"), of("blog", "b"), of("blog", "c"))
    assert bed.store.read(f"personal-projects/shop/{NOTE}").occurrences == 1
    assert bed.store.read(f"personal-projects/blog/{NOTE}").occurrences == 2


def test_said_for_everything_it_is_a_note_of_its_own(bed: Bed) -> None:
    """The other one goes on saying "this repo", which a third project must not read of itself."""
    bed.remember(of("shop", "a"))
    bed.remember(said(RULE, "b", "Never squash commits."))
    assert {entry.project for entry in bed.entries()} == {"shop", None}


def test_rule_that_does_not_mention_its_project_becomes_general(bed: Bed) -> None:
    bed.remember(of("shop", "a", "Never edit schema.json by hand."))
    bed.remember(of("blog", "b", "Never edit schema.json by hand."))
    (entry,) = bed.entries()
    assert (entry.project, entry.occurrences) == (None, 2)


def test_rejected_for_one_project_it_can_be_said_of_another(bed: Bed) -> None:
    path = bed.note(f"personal-projects/shop/{NOTE}", SQUASH, kind="preferences", status="dismissed", project="shop")
    bed.remember(of("shop", "a"))
    assert [entry.path for entry in bed.entries()] == [path]
    bed.remember(of("blog", "b"))
    assert sorted(entry.project or "" for entry in bed.entries()) == ["blog", "shop"]


def test_a_note_that_the_user_moved_to_another_project_is_not_written_again(bed: Bed) -> None:
    bed.remember(of("shop", "a"))
    there = bed.vault / "personal-projects" / "web" / NOTE
    there.parent.mkdir(parents=True)
    (bed.vault / "personal-projects" / "shop" / NOTE).rename(there)
    bed.edit(f"personal-projects/web/{NOTE}", "project: shop", "project: web")
    bed.remember(of("shop", "a"))
    assert [entry.project for entry in bed.entries()] == ["web"]


def test_triage_does_not_merge_them(bed: Bed) -> None:
    for project in ("shop", "blog"):
        fields = {"kind": "preferences", "status": "inbox", "project": project}
        bed.note(f"personal-private/_inbox/{project}.md", SQUASH, **fields)
    assert run_triage(bed.settings, bed.reviewer) == []
