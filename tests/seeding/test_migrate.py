"""Convert the notes of a ContextVault into entries."""

import signal
from pathlib import Path

import pytest

from memoryvault.runtime.errors import UsageError
from memoryvault.services.migrating import MigratedFile
from memoryvault.services.migrating import migrate as migrate_folder
from memoryvault.services.undoing import Selector

from ..review.support import RULE, Bed
from ..support.files import put

TERRAFORM = '---\ntitle: "Terraform"   # mine\nkind: note\ncreated: 2025-01-02\n---\n\n# Terraform\n\nBody.\n'
PLACES = {
    "domains/Terraform.md": "personal-private/domains/terraform.md",
    "domains/deep/Some Note.md": "personal-private/domains/deep-some-note-2.md",
    "domains/deep-some-note.md": "personal-private/domains/deep-some-note.md",
    "projects/ai-context-system/conversations/2025-05-01 First.md": (
        "personal-projects/memoryvault/conversations/2025-05-01-first.md"
    ),
    "projects/my_shop/conversations/talk.md": "personal-projects/my-shop/conversations/talk.md",
    "projects/my_shop/plan.md": "personal-projects/my-shop/notes/plan.md",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    root = tmp_path / "ContextVault"
    for name in PLACES:
        put(root / name, TERRAFORM if "Terraform" in name else f"What {name} says.\n")
    return root


def migrate(bed: Bed, old: Path) -> list[MigratedFile]:
    return migrate_folder(old, bed.store, bed.journal)


def test_each_note_goes_to_its_place_with_the_fields_of_an_entry(bed: Bed, old: Path) -> None:
    assert {one.source: one.path for one in migrate(bed, old)} == PLACES
    kinds = {entry.path: (entry.kind, entry.project, entry.effective_status) for entry in bed.entries()}
    assert kinds["personal-private/domains/terraform.md"] == ("domain-reference", None, "active")
    assert kinds[PLACES["projects/my_shop/conversations/talk.md"]] == ("conversation", "my-shop", "active")
    assert kinds[PLACES["projects/my_shop/plan.md"]] == ("project-note", "my-shop", "active")


def test_the_notes_own_lines_stay_byte_for_byte(bed: Bed, old: Path) -> None:
    migrate(bed, old)
    text = bed.files()["personal-private/domains/terraform.md"]
    assert 'title: "Terraform"   # mine\n' in text
    assert "created: 2025-01-02\n" in text
    assert text.endswith("---\n\n# Terraform\n\nBody.\n")
    assert (old / "domains" / "Terraform.md").read_text() == TERRAFORM


def test_a_second_run_takes_only_what_has_come_since(bed: Bed, old: Path) -> None:
    migrate(bed, old)
    before = bed.files()
    (bed.vault / "personal-private" / "domains" / "terraform.md").rename(bed.vault / "moved.md")
    (old / "domains" / "new.md").write_text("New.\n")
    done = {one.source: one.result for one in migrate(bed, old)}
    assert {source for source, result in done.items() if result == "migrate"} == {"domains/new.md"}
    assert len(bed.files()) == len(before) + 1


def test_an_undo_takes_it_back_and_leaves_what_was_edited(bed: Bed, old: Path) -> None:
    migrate(bed, old)
    bed.remember(RULE)  # a session is reflected before the user thinks better of it
    edited = PLACES["projects/my_shop/plan.md"]
    bed.edit(edited, "says", "tells")
    bed.undo.carry_out(Selector(last=True, actor="migrate"))
    assert set(bed.files()) == {edited, "personal-private/preferences/always-use-pnpm-not-npm.md"}
    migrate(bed, old)
    assert len(bed.files()) == len(PLACES) + 1


def test_secrets_go_people_stay_and_other_files_are_named(bed: Bed, old: Path) -> None:
    (old / "domains" / "Terraform.md").write_text(f"token ghp_{'b' * 36} of ann@example.com\n")
    (old / "domains" / "bad.md").write_bytes(b"\xff\xfe")
    (old / "domains" / "picture.png").write_bytes(b"x")
    (old / "domains" / "link.md").symlink_to("/etc/hostname")
    (old / "projects" / "loose.md").write_text("x")
    done = {one.source: one for one in migrate(bed, old)}
    assert done["domains/Terraform.md"].secrets == 1
    text = bed.files()["personal-private/domains/terraform.md"]
    assert "ghp_" not in text
    assert "ann@example.com" in text
    left = {source for source, one in done.items() if one.result == "left"}
    assert left == {"domains/bad.md", "domains/picture.png", "domains/link.md", "projects/loose.md"}


def test_a_folder_that_is_no_contextvault(bed: Bed, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither domains/ nor projects/"):
        migrate(bed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["journal-pending", "journal-applied", "journal-recorded@3"])
def test_a_migration_that_is_killed_goes_on_where_it_ended(bed: Bed, old: Path, point: str) -> None:
    code = f"from memoryvault.services.migrating import migrate\nmigrate(Path({str(old)!r}), store, journal)\n"
    assert bed.run_python(code, point) == -signal.SIGKILL
    assert bed.run_python(code) == 0
    assert set(bed.files()) == set(PLACES.values())
