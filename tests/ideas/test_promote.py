"""Promotion is one act: the folder, the note, Ideas.md, and the index, which needs no new vectors."""

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from memoryvault.index.reconcile import reconcile
from memoryvault.index.store import IndexStore
from memoryvault.pipelines.incubation import Answer
from memoryvault.runtime.errors import EntryExists, EntryNotFound, PathRefused, VaultUnavailable
from memoryvault.services.boundary import clean_outside
from memoryvault.services.decision_property import DecisionOutcome
from memoryvault.services.ideas.archive import promote, put_away, restore
from memoryvault.services.ideas.ledger import find_idea
from memoryvault.vault.store import VaultStore

from ..review.support import Bed, said
from .support import IDEA, INCUBATOR, SLUG, ideas_file, outside, write_down

pytestmark = pytest.mark.slow

PROMOTE = """
from memoryvault.services.ideas.archive import promote
promote(journal, "retry-page", ideas_file=settings.ideas_path)
"""
ACT = ("vault-before-rename", "vault-before-rename@2", "vault-before-rename@3")
KILL_POINTS = ["journal-pending", *ACT, "journal-applied", "journal-applied@2", "journal-applied@3", "journal-recorded"]


@pytest.fixture
def folder(bed: Bed) -> Path:
    """An idea with research, an attachment, and a section in Ideas.md among the user's own words."""
    (bed.root / "Ideas.md").write_text("# Mine\n\nFirst words.\n")
    write_down(bed, "Retry page")
    with (bed.root / "Ideas.md").open("a") as file:
        file.write("\n## Another\n\nLast words.\n")
    folder = bed.vault / INCUBATOR / "retry-page"
    (folder / "research-example.md").write_text("---\nkind: idea\nstatus: incubating\n---\n\nFetched.\n")
    (folder / "sketch.png").write_bytes(b"\x89PNG")
    return folder


def do_promote(bed: Bed, name: str | None = None) -> DecisionOutcome:
    return promote(bed.journal, "retry-page", name=name, ideas_file=bed.settings.ideas_path)


def test_the_folder_moves_the_note_is_active_and_the_list_says_so(bed: Bed, folder: Path) -> None:
    before = ideas_file(bed)
    done = do_promote(bed)
    assert (done.verdict, done.path) == ("promoted", "personal-projects/retry-page/_index.md")
    assert done.listed_in == str(bed.root / "Ideas.md")
    assert not folder.exists()
    new = bed.vault / "personal-projects/retry-page"
    assert sorted(path.name for path in new.iterdir()) == ["_index.md", "research-example.md", "sketch.png"]
    entry = bed.store.read(done.path)
    assert (entry.status, entry.project, entry.slug) == ("active", "retry-page", "retry-page")
    assert entry.extra["promoted"] == bed.store.today().isoformat()
    line = f"→ promoted {bed.store.today()} to MemoryVault/personal-projects/retry-page/\n"
    assert line in ideas_file(bed)
    was = f"{INCUBATOR}/retry-page/_index.md"
    assert ideas_file(bed).replace(line, "").replace(done.path, was) == before


@pytest.mark.parametrize("name", [None, "payments"])
def test_asking_for_a_promoted_idea_tells_when_and_where_it_went(bed: Bed, folder: Path, name: str | None) -> None:
    day, project = bed.store.today(), name or "retry-page"
    do_promote(bed, name)
    told = f"the idea retry-page was promoted on {day}: it is the project personal-projects/{project} now"
    with pytest.raises(EntryNotFound, match=told):
        find_idea(bed.store, "retry-page")
    with pytest.raises(EntryNotFound, match=told):
        put_away(bed.journal, "retry-page", Answer.DELETE, run="r", actor="idea")
    with pytest.raises(EntryNotFound, match=told):
        restore(bed.journal, "retry-page")
    with pytest.raises(EntryNotFound, match=told):
        do_promote(bed)
    assert (bed.vault / "personal-projects" / project / "_index.md").is_file()


def test_a_project_of_that_name_is_no_promoted_idea(bed: Bed) -> None:
    bed.note("personal-projects/retry-page/_index.md", "x", kind="convention")
    write_down(bed, "Retry page")
    do_promote(bed, "payments")
    with pytest.raises(EntryNotFound, match="there is no idea payments"):
        find_idea(bed.store, "payments")
    with pytest.raises(EntryNotFound, match="it is the project personal-projects/payments now"):
        find_idea(bed.store, "retry-page")


@pytest.mark.parametrize("found", ["no_ideas_file", "no_section", "not_writable"])
def test_whatever_the_list_is_like_the_idea_is_promoted_and_the_list_stays(bed: Bed, folder: Path, found: str) -> None:
    if found == "no_ideas_file":
        (bed.root / "Ideas.md").unlink()
    elif found == "no_section":
        (bed.root / "Ideas.md").write_text("# Mine\n")
    else:
        (bed.root / "Ideas.md").chmod(0o444)
    before = outside(bed)
    done = do_promote(bed)
    assert done.listed_in is None
    assert bed.store.read(done.path).status == "active"
    assert outside(bed) == before
    assert not bed.journal.is_interrupted


def test_a_question_that_waits_for_it_goes_with_it(bed: Bed) -> None:
    bed.remember(IDEA)
    promote(bed.journal, SLUG, ideas_file=bed.settings.ideas_path)
    assert bed.reviewer.waiting() == []


def test_a_project_that_is_there_is_never_mixed_with_it(bed: Bed, folder: Path) -> None:
    bed.note("personal-projects/retry-page/convention/x.md", "x", kind="convention")
    before, list_before = bed.files(), ideas_file(bed)
    with pytest.raises(EntryExists, match="--as"):
        do_promote(bed)
    assert (bed.files(), ideas_file(bed)) == (before, list_before)
    assert do_promote(bed, "retries").path == "personal-projects/retries/_index.md"
    with pytest.raises(EntryNotFound):
        do_promote(bed)


def test_said_again_a_promoted_idea_gets_evidence_where_it_is(bed: Bed) -> None:
    bed.remember(IDEA)
    done = promote(bed.journal, SLUG, ideas_file=bed.settings.ideas_path)
    bed.remember(said(IDEA, "s7"))
    assert [entry.path for entry in bed.entries() if entry.kind == "idea"] == [done.path]
    assert bed.store.read(done.path).occurrences == 2


def test_the_index_has_the_new_paths_and_needs_no_new_vector(bed: Bed, folder: Path, tmp_path: Path) -> None:
    with IndexStore(tmp_path / "index.db") as index:
        if not index.has_vectors:
            pytest.skip("this SQLite loads no sqlite-vec")
        reconcile(index, bed.vault, bed.store.walk)
        model = index.model_id("m", 4)
        pending = index.pending_texts("m", 100)
        row = struct.pack("<4f", 1, 0, 0, 0)
        index.add_vectors(model, [text.text_hash for text in pending], [row] * len(pending), [b""] * len(pending))
        assert index.pending_count("m") == 0
        do_promote(bed)
        reconcile(index, bed.vault, bed.store.walk)
        paths = set(index.files())
        assert index.pending_count("m") == 0
    assert "personal-projects/retry-page/_index.md" in paths
    assert not [path for path in paths if INCUBATOR in path]


def test_only_what_a_killed_writer_left_is_removed_beside_the_list(bed: Bed) -> None:
    left = bed.root / ".memoryvault-123-0123456789ab.tmp"
    others = (".memoryvault-notes.tmp", ".memoryvault-123-0123456789ab.tmp.md", "x.memoryvault-123-0123456789ab.tmp")
    link, new = bed.root / ".memoryvault-1-0123456789ab.tmp", bed.root / ".memoryvault-2-0123456789ab.tmp"
    below = bed.root / "Diary" / left.name
    below.parent.mkdir()
    for path in (left, below, *(bed.root / name for name in others)):
        path.write_text("x")
        os.utime(path, (1, 1))
    link.symlink_to(below)
    new.write_text("being written")
    assert clean_outside(bed.store, bed.settings.ideas_path) == 1
    assert set(outside(bed)) == {*others, link.name, new.name, f"Diary/{left.name}"}


@pytest.mark.parametrize("point", KILL_POINTS)
def test_killed_at_any_step_it_is_before_or_after(bed: Bed, folder: Path, point: str) -> None:
    before, list_before = bed.files(), ideas_file(bed)
    assert bed.run_python(PROMOTE, point) == -9
    bed.journal.recover()
    bed.journal.recover()
    assert not bed.journal.is_interrupted
    for path in bed.root.glob(".*"):
        os.utime(path, (1, 1))  # What was left half written is old by now.
    clean_outside(bed.store, bed.settings.ideas_path)
    assert outside(bed).keys() == {"Ideas.md"}
    if folder.exists():
        assert (bed.files(), ideas_file(bed)) == (before, list_before)
        assert not (bed.vault / "personal-projects/retry-page").exists()
        do_promote(bed)
    entry = bed.store.read("personal-projects/retry-page/_index.md")
    assert entry.status == "active"
    assert ideas_file(bed).count("→ promoted") == 1
    assert not folder.exists()
    assert (bed.vault / "personal-projects/retry-page/sketch.png").exists()


@pytest.mark.parametrize("point", ["journal-applied", "journal-applied@3", "journal-recorded"])
def test_what_is_typed_into_the_list_after_a_crash_is_kept_as_what_it_says(bed: Bed, folder: Path, point: str) -> None:
    assert bed.run_python(PROMOTE, point) == -9
    with (bed.root / "Ideas.md").open("a") as file:
        file.write("Typed after the crash.\n")
    text = ideas_file(bed)
    bed.journal.recover()
    assert ideas_file(bed) == text
    assert folder.exists() is ("→ promoted" not in text) is (point == "journal-applied"), (
        "all of it is taken back, or none"
    )
    if folder.exists():
        do_promote(bed)
        assert "Typed after the crash." in ideas_file(bed)
    assert bed.store.read("personal-projects/retry-page/_index.md").status == "active"
    assert bed.journal.acts()[-1].what == "promoted: retry-page"


@pytest.mark.parametrize("known", [True, False], ids=["noted", "told by the text"])
@pytest.mark.parametrize("point", ["journal-applied", "journal-applied@2"])
def test_an_old_note_saved_after_a_crash_leaves_it_all_done(bed: Bed, folder: Path, point: str, known: bool) -> None:
    """Obsidian had it open: the old folder is there again, with that one file."""
    assert bed.run_python(PROMOTE, point) == -9
    if not known:
        (Path(bed.settings.state.root) / "journal" / "pending.steps").unlink()
    folder.mkdir(parents=True)
    (folder / "_index.md").write_text("saved once more")
    bed.journal.recover()
    assert not bed.journal.is_interrupted
    assert bed.store.read("personal-projects/retry-page/_index.md").status == "active"
    assert ideas_file(bed).count("→ promoted") == 1
    assert (folder / "_index.md").read_text() == "saved once more"


@pytest.mark.parametrize(
    ("room", "told"), [(0, "nothing was changed"), (1, "the next command or job completes")], ids=["none", "one file"]
)
def test_on_a_full_disk_nothing_is_changed_or_it_is_ended_later(
    bed: Bed, folder: Path, monkeypatch: pytest.MonkeyPatch, room: int, told: str
) -> None:
    """The folder moves, which needs no room. What was written cannot be written back without room."""
    before = (bed.files(), ideas_file(bed))
    writes, write = [], VaultStore._write_temporary

    def filling_up(store: VaultStore, *arguments: Any, **options: Any) -> Path:
        writes.append(1)
        if len(writes) > room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(store, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(VaultStore, "_write_temporary", filling_up)
        with pytest.raises(VaultUnavailable, match=f"No space left on device; {told}"):
            do_promote(bed)
    if room == 0:
        assert (bed.files(), ideas_file(bed)) == before
        assert not bed.journal.is_interrupted
        do_promote(bed)
    else:
        assert bed.journal.recover()
    assert bed.store.read("personal-projects/retry-page/_index.md").status == "active"
    assert ideas_file(bed).count("→ promoted") == 1
    assert not folder.exists()


def test_taken_back_with_a_list_that_was_typed_in_both_are_as_before_but_for_what_was_typed(bed: Bed) -> None:
    """Its question, the last of the act, was edited after the crash as well."""
    bed.remember(IDEA)
    section = f"## 2026-01-01: Retries\nSome.\nSee deep research: [[MemoryVault/{INCUBATOR}/{SLUG}/_index.md]]\n"
    (bed.root / "Ideas.md").write_text(section)
    assert bed.run_python(PROMOTE.replace("retry-page", SLUG), "journal-applied@3") == -9
    with (bed.root / "Ideas.md").open("a") as file:
        file.write("Typed after the crash.\n")
    (question,) = bed.reviewer.waiting()
    bed.edit(question.path, "Put this idea", "Really put this idea")
    bed.journal.recover()
    assert (bed.vault / INCUBATOR / SLUG).exists()
    assert ideas_file(bed) == section + "Typed after the crash.\n"


def test_the_folder_that_cannot_move_changes_nothing(bed: Bed, folder: Path) -> None:
    (bed.vault / "personal-projects").write_text("a file in the way")
    before = ideas_file(bed)
    with pytest.raises(PathRefused):
        do_promote(bed)
    assert folder.exists()
    assert ideas_file(bed) == before
