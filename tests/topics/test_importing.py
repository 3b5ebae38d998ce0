"""Claude Code's own notes: read, copied, followed, left alone."""

import json
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from memoryvault.hooks.session_start import format_reminder
from memoryvault.runtime.large_change import large_change_notice, note_large_change
from memoryvault.services.health_report import health_report
from memoryvault.services.importing import HostMemory, ImportOutcome
from memoryvault.services.undoing import Selector
from memoryvault.tasks.jobs.sweeps import import_handler, skills_handler
from memoryvault.tasks.queue.job import RunningJob
from memoryvault.tests.support import forked
from memoryvault.tests.support.files import put
from memoryvault.vault.entry import Source
from memoryvault.vault.store import VaultStore

from ..review.support import Bed, make_bed

TOKEN = "ghp_" + "b" * 36
OLD = (
    "---\nname: Reviewer shape\ndescription: Where the review shape lives\ntype: feedback\n"
    "originSessionId: s-1\n---\nIn one skill.\n"
)
NEW = (
    "---\nname: uitest-timeouts\ndescription: Five seconds on Windows\nmetadata: \n  node_type: memory\n"
    f"  type: user\n  originSessionId: s-2\n---\n\nNever more. {TOKEN}\n"
)
BRING_IN = "from memoryvault.services.importing import HostMemory\nHostMemory(settings, store).bring_in()\n"


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return make_bed(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))


def notes_of(root: Path, cwd: str) -> Path:
    """The folder of notes of this folder, with a session that tells so."""
    folder = root / "claude" / "projects" / re.sub(r"\W|_", "-", cwd)
    (folder / "memory").mkdir(parents=True)
    (folder / "s.jsonl").write_text('{"type":"mode"}\n' + json.dumps({"type": "user", "cwd": cwd}) + "\n")
    return folder / "memory"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return notes_of(tmp_path, "/src/my_shop")


def bring_in(bed: Bed) -> list[ImportOutcome]:
    return HostMemory(bed.settings, bed.store).bring_in()


def results(bed: Bed) -> dict[str, str]:
    return {Path(one.source).name: one.result for one in bring_in(bed)}


def test_three_generations_are_only_read_and_copied_with_their_origin(bed: Bed, notes: Path, tmp_path: Path) -> None:
    (notes / "feedback_shape.md").write_text(OLD)
    (notes / "uitest-timeouts.md").write_text(NEW)
    (notes / "MEMORY.md").write_text("- [R](feedback_shape.md) — x\n")
    (notes_of(tmp_path, "/src/blog") / "MEMORY.md").write_text("# Project notes\n\n- Tests need a local Redis\n")
    before = {path: path.read_bytes() for path in (tmp_path / "claude").rglob("*") if path.is_file()}
    bring_in(bed)
    assert {path: path.read_bytes() for path in (tmp_path / "claude").rglob("*") if path.is_file()} == before
    found = {entry.path: entry for entry in bed.entries()}
    shop = "personal-projects/my-shop/claude-memory"
    assert set(found) == {
        f"{shop}/feedback-shape.md",
        f"{shop}/uitest-timeouts.md",
        "personal-projects/blog/claude-memory/memory.md",
    }
    old = found[f"{shop}/feedback-shape.md"]
    assert (old.kind, old.tags, old.project) == ("topic", ("feedback",), "my-shop")
    assert old.title == "Where the review shape lives"
    assert old.sources == (Source("claude", "s-1", ("feedback_shape.md",)),)
    assert found[f"{shop}/uitest-timeouts.md"].sources[0].session == "s-2"
    assert not any(TOKEN in text for text in bed.files().values())
    assert "local Redis" in found["personal-projects/blog/claude-memory/memory.md"].body


def test_later_edits_are_followed_and_nothing_else_is_written(bed: Bed, notes: Path) -> None:
    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "imported"}
    before = bed.files()
    assert results(bed) == {"a.md": "unchanged"}
    assert bed.files() == before
    (notes / "a.md").write_text(OLD.replace("one skill", "two skills").replace("Where the", "Where a"))
    assert results(bed) == {"a.md": "updated"}
    (entry,) = bed.entries()
    assert "In two skills." in entry.body
    assert entry.title == "Where a review shape lives"
    (notes / "a.md").unlink()
    assert results(bed) == {"a.md": "removed"}
    assert [entry.effective_status for entry in bed.entries()] == ["archived"]
    assert results(bed) == {}
    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "imported"}


def test_a_project_that_links_out_of_the_vault_stops_no_other_copy(bed: Bed, notes: Path, tmp_path: Path) -> None:
    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "imported"}
    elsewhere = tmp_path / "elsewhere"
    (bed.vault / "personal-projects" / "my-shop").rename(elsewhere)
    (bed.vault / "personal-projects" / "my-shop").symlink_to(elsewhere)
    (notes_of(tmp_path, "/src/zoo") / "z.md").write_text(OLD)
    (notes / "a.md").write_text(OLD + "More.\n")
    before = {path: path.read_bytes() for path in elsewhere.rglob("*.md")}
    told = {Path(one.source).name: one for one in bring_in(bed)}
    assert (told["a.md"].result, told["z.md"].result) == ("refused", "imported")
    assert "symbolic link" in told["a.md"].why
    (notes / "a.md").unlink()
    assert results(bed) == {"a.md": "refused", "z.md": "unchanged"}
    assert {path: path.read_bytes() for path in elsewhere.rglob("*.md")} == before


def test_a_copy_that_the_user_edited_or_deleted_stays_so(bed: Bed, notes: Path) -> None:
    for name in ("a.md", "b.md"):
        (notes / name).write_text(OLD)
    paths = {Path(one.source).name: str(one.path) for one in bring_in(bed)}
    bed.edit(paths["a.md"], "one skill", "my own words")
    (bed.vault / paths["b.md"]).unlink()
    for name in ("a.md", "b.md"):
        (notes / name).write_text(OLD + "More.\n")
    before = bed.files()
    assert results(bed) == {"a.md": "yours", "b.md": "yours"}
    assert bed.files() == before


def test_notes_of_one_name_on_two_machines_are_two_copies(bed: Bed, notes: Path) -> None:
    def there() -> list[str]:
        """On the other machine, which has a state of its own."""
        other = replace(bed, env={**bed.env, "MEMORY_STATE_DIR": str(bed.root / "other-state")})
        other.settings.state.ensure()
        return [one.result for one in HostMemory(other.settings, other.store, "laptop").bring_in()]

    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "imported"}
    assert there() == ["unchanged"], "the same text has one copy"
    first = bed.files()
    (notes / "a.md").write_text(OLD.replace("one skill", "a skill of the laptop"))
    assert there() == ["imported"]
    after = bed.files()
    assert {path: after[path] for path in first} == first
    assert len(after) == 2
    (notes / "a.md").write_text(OLD + "More.\n")
    assert results(bed) == {"a.md": "updated"}
    (notes / "a.md").write_text(OLD.replace("one skill", "another skill of the laptop"))
    assert there() == ["updated"]
    assert sorted("laptop" in text for text in bed.files().values()) == [False, True]


def test_copies_edited_without_state_are_searched_once(bed: Bed, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (notes / "a.md").write_text(OLD)
    (path,) = (str(one.path) for one in bring_in(bed))
    bed.edit(path, "one skill", "my own words")
    Path(bed.settings.state.state_db).unlink()
    assert results(bed) == {"a.md": "yours"}
    monkeypatch.setattr(VaultStore, "walk", None)  # No run looks through the vault for it again.
    monkeypatch.setattr(VaultStore, "contents", None)
    assert results(bed) == {"a.md": "yours"}
    (bed.vault / path).unlink()
    assert results(bed) == {"a.md": "yours"}
    monkeypatch.undo()
    assert bed.files() == {}


def test_files_that_are_not_notes_or_have_no_known_project(bed: Bed, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    put(tmp_path / "claude" / "projects" / "-gone" / "memory" / "a.md", OLD)
    assert results(bed) == {"a.md": "no project"}
    assert bed.files() == {}


@pytest.mark.parametrize("after", [OLD, OLD + "More.\n", None], ids=["import", "rewriting", "removal"])
def test_what_an_undo_takes_back_does_not_return(bed: Bed, notes: Path, after: str | None) -> None:
    note = notes / "a.md"
    if after != OLD:
        note.write_text(OLD)
        bring_in(bed)
    before = bed.files()
    if after is None:
        note.unlink()
    else:
        note.write_text(after)
    bring_in(bed)
    bed.undo.carry_out(Selector(last=True))
    assert results(bed) == ({} if after is None else {"a.md": "unchanged"})
    assert bed.files() == before
    note.write_text(OLD + "Another.\n")
    assert results(bed) == {"a.md": "yours" if after == OLD else "updated"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["journal-pending", "journal-applied", "journal-recorded"])
def test_an_import_that_is_killed_is_done_once(bed: Bed, notes: Path, point: str) -> None:
    for name in ("a.md", "b.md"):
        (notes / name).write_text(OLD)
    assert bed.run_python(BRING_IN, point) == -signal.SIGKILL
    assert bed.run_python(BRING_IN) == 0
    assert len(bed.files()) == 2
    (notes / "a.md").write_text(OLD + "More.\n")
    assert results(bed) == {"a.md": "updated", "b.md": "unchanged"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["journal-pending", "journal-applied", "journal-recorded"])
@pytest.mark.parametrize("again", [OLD, OLD + "More.\n", OLD + "Even more.\n"], ids=["back", "same", "other"])
def test_after_a_killed_update_the_copy_is_still_followed(bed: Bed, notes: Path, point: str, again: str) -> None:
    (notes / "a.md").write_text(OLD)
    bring_in(bed)
    (notes / "a.md").write_text(OLD + "More.\n")
    assert bed.run_python(BRING_IN, point) == -signal.SIGKILL
    (notes / "a.md").write_text(again)
    assert results(bed) == {"a.md": "updated"}
    (entry,) = bed.entries()
    assert ("More." in entry.body, "Even more." in entry.body) == ("\nMore." in again, "Even more." in again)
    assert results(bed) == {"a.md": "unchanged"}


@pytest.mark.slow
def test_a_first_import_that_was_killed_and_whose_note_is_gone_leaves_nothing(bed: Bed, notes: Path) -> None:
    (notes / "a.md").write_text(OLD)
    assert bed.run_python(BRING_IN, "journal-pending") == -signal.SIGKILL
    (notes / "a.md").unlink()
    bring_in(bed)
    assert (bed.files(), results(bed)) == ({}, {})
    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "imported"}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["journal-pending", "journal-applied", "journal-recorded"])
@pytest.mark.parametrize("is_back", [True, False])
def test_after_a_killed_removal_a_note_is_back_with_the_hosts(bed: Bed, notes: Path, point: str, is_back: bool) -> None:
    (notes / "a.md").write_text(OLD)
    bring_in(bed)
    (notes / "a.md").unlink()
    assert bed.run_python(BRING_IN, point) == -signal.SIGKILL
    if not is_back:
        bring_in(bed)
        assert [entry.effective_status for entry in bed.entries()] == ["archived"]
        assert results(bed) == {}
    (notes / "a.md").write_text(OLD)
    assert results(bed)["a.md"] in ("imported", "updated")
    assert [entry.effective_status for entry in bed.entries()].count("active") == 1
    assert results(bed) == {"a.md": "unchanged"}


@pytest.mark.parametrize("text", [b"x" * 1_000_001, OLD.encode() + b"\xff"], ids=["too large", "not UTF-8"])
def test_a_note_that_cannot_be_read_is_not_taken_for_removed(bed: Bed, notes: Path, text: bytes) -> None:
    (notes / "a.md").write_text(OLD)
    bring_in(bed)
    before = bed.files()
    (notes / "a.md").write_bytes(text)
    assert results(bed) == {}
    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "unchanged"}
    assert bed.files() == before


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_folder_that_is_away_for_a_time_removes_nothing(bed: Bed, notes: Path, level: int) -> None:
    (notes / "a.md").write_text(OLD)
    bring_in(bed)
    before = bed.files()
    folder = (notes, *notes.parents)[level]
    away = folder.rename(bed.root / "away")
    assert HostMemory(bed.settings, bed.store).bring_in() == []
    away.rename(folder)
    assert results(bed) == {"a.md": "unchanged"}
    assert bed.files() == before


def test_the_copy_of_an_index_goes_when_topics_stand_beside_it(bed: Bed, notes: Path) -> None:
    (notes / "MEMORY.md").write_text("# Notes\n\n- Tests need a local Redis\n")
    assert results(bed) == {"MEMORY.md": "imported"}
    (notes / "a.md").write_text(OLD)
    assert results(bed) == {"a.md": "imported", "MEMORY.md": "removed"}


def test_a_large_change_of_the_scheduled_run_is_told_with_its_undo(bed: Bed, notes: Path) -> None:
    class Job:
        def enqueue(self, *_: object, **__: object) -> int:
            return 1

    def run() -> str:
        import_handler(bed.settings, cast(RunningJob, Job()))
        return format_reminder(str(bed.vault), bed.settings.state.markers, "s", "")

    for number in range(23):
        (notes / f"note-{number}.md").write_text(NEW.replace("uitest-timeouts", f"note-{number}"))
    assert run() == "", "what the host adds loses nothing"
    for number in range(23):
        (notes / f"note-{number}.md").write_text("")
    assert "23 notes were archived or rewritten, as Claude Code did with its own; `memory undo --of import`" in run()
    for number in range(23):
        (notes / f"note-{number}.md").unlink()
    told = "23 notes were archived: Claude Code has deleted its own; `memory undo --of import` takes it back"
    assert told in run()
    report = health_report(bed.settings, time.time(), lambda settings: True)
    assert told in report.warnings
    assert forked.memory(bed.env, "undo", "--of", "import", "--yes").returncode == 0
    assert len([entry for entry in bed.entries() if entry.effective_status == "active"]) >= 23
    assert told not in format_reminder(str(bed.vault), bed.settings.state.markers, "s", "")


def test_the_large_changes_of_several_jobs_are_all_told(bed: Bed) -> None:
    class Job:
        def enqueue(self, *_: object, **__: object) -> int:
            return 1

        def check_owned(self) -> None:
            pass

    skills = bed.settings.hosts.claude_config_dir / "skills"
    for number in range(12):
        put(skills / f"skill-{number}" / "SKILL.md", f"---\nname: skill-{number}\ndescription: Does it.\n---\n# It\n")
    skills_handler(bed.settings, cast(RunningJob, Job()))
    shutil.rmtree(skills)
    skills.mkdir()
    skills_handler(bed.settings, cast(RunningJob, Job()))
    note_large_change(bed.settings.state.markers, "triage", 40, "put elsewhere", "undo it")
    told = large_change_notice(bed.settings.state.markers, time.time())
    assert told == (
        "40 notes were put elsewhere; undo it; "
        "12 notes were archived: their skills are gone; once these are there again, the notes come back"
    )
