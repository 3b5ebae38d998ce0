"""A project folder that links out of the vault is neither read nor written; no statement is lost by it."""

from dataclasses import replace
from pathlib import Path

from memoryvault.pipelines.review import Approve

from .support import CHOICE, RULE, Bed


def linked(bed: Bed, tmp_path: Path) -> Path:
    elsewhere = tmp_path / "another disk" / "shop"
    elsewhere.mkdir(parents=True)
    (bed.vault / "personal-projects").mkdir(exist_ok=True)
    (bed.vault / "personal-projects" / "shop").symlink_to(elsewhere)
    return elsewhere


def test_a_rule_of_that_project_is_kept_among_the_users_own_and_is_the_projects(bed: Bed, tmp_path: Path) -> None:
    elsewhere = linked(bed, tmp_path)
    bed.remember(replace(RULE, scope="project", project="shop"))
    entry = bed.only("active")
    assert entry.path.startswith("personal-private/preferences/")
    assert entry.project == "shop"
    assert not [*elsewhere.iterdir()]


def test_a_proposal_for_that_project_can_be_approved(bed: Bed, tmp_path: Path) -> None:
    linked(bed, tmp_path)
    bed.remember(replace(CHOICE, scope="project", project="shop"))
    bed.reviewer.decide(bed.only("pending").path, Approve(), run="r1")
    entry = bed.only("active")
    assert entry.path.startswith("personal-private/")
    assert entry.project == "shop"


def test_a_link_to_another_folder_of_the_vault_is_used(bed: Bed) -> None:
    (bed.vault / "work" / "shop").mkdir(parents=True)
    (bed.vault / "personal-projects").mkdir(exist_ok=True)
    (bed.vault / "personal-projects" / "shop").symlink_to(bed.vault / "work" / "shop")
    bed.remember(replace(RULE, scope="project", project="shop"))
    assert [path for path in bed.files() if path.startswith("work/shop/preferences/")]
