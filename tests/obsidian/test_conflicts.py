"""Copies of a sync conflict: never indexed, offered for merge, and every choice can be undone."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoryvault.hooks.entryfile import is_entry_name
from memoryvault.runtime.errors import EditConflict, EntryInvalid
from memoryvault.runtime.layout import is_conflict_copy, original_name
from memoryvault.runtime.paths import is_note_name
from memoryvault.runtime.settings import load_settings
from memoryvault.services.conflicts import Choice, find_copy, settle_copy, waiting_copies
from memoryvault.services.stores import vault_store
from memoryvault.services.tombstones import EMPTY, evidence_of, text_with
from memoryvault.services.tombstones import NOTE as TAKEN_BACK
from memoryvault.tasks.jobs.dashboard import refresh_dashboard
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.forked import ForkedSandbox

from ..review.support import Bed
from ..support.files import put
from ..support.terminal import Terminal

FOLDER = "personal-private/preferences"
NOTE, COPY = f"{FOLDER}/tabs.md", f"{FOLDER}/tabs.sync-conflict-20260101-101010-ABCDEFG.md"
MINE = "---\nkind: preferences\nstatus: active\n---\n\n# Tabs\n\nUse tabs.\nIn Go.\n"
THEIRS = "---\nkind: preferences\nstatus: active\n---\n\n# Tabs\n\nUse spaces.\nIn Go.\n"


def conflict(vault: Path, mine: str | None = MINE, theirs: str = THEIRS) -> None:
    """A note and the copy that Syncthing left beside it."""
    put(vault / COPY, theirs)
    if mine is not None:
        put(vault / NOTE, mine)


@pytest.mark.parametrize(
    "name",
    [
        "a b.sync-conflict-20260101-101010-ABCDEFG.md",
        "a b (conflicted copy 2026-01-01 101010).md",
        "a b (Ada's conflicted copy 2026-01-01).md",
        "a b (Conflicted copy desk 202601011010).md",
        "a b_conflict-20260101-101010.md",
        "a b (SFConflict ada@example.com 2026-01-01-10-10-10).md",
        "a b (Case Conflict 1).md",
    ],
)
def test_the_note_beside_a_copy_is_known_by_its_name(name: str) -> None:
    assert is_conflict_copy(name)
    assert not is_note_name(name)
    assert not is_entry_name(name), "hooks agree"
    assert original_name(name) == "a b.md"
    again = name.replace("a b", name.removesuffix(".md"), 1)
    assert original_name(again) == name, "of a copy of a copy the copy is the original"


def test_a_note_with_gits_conflict_marks_is_reported_by_the_review_and_never_edited(ask: Bed, memory: Command) -> None:
    header = "kind: fix\n<<<<<<< HEAD\nstatus: dismissed\n=======\nstatus: active\n>>>>>>> origin/main\n"
    path = put(ask.vault / NOTE, f"---\n{header}---\n\nTabs.\n")
    before = path.read_bytes()
    for how in (["--list"], []):
        listed = memory("review", *how)
        assert f"git left both sides of a merge in {FOLDER}/tabs.md" in listed.err
        assert listed.out.strip() == "nothing else waits for your decision"
    told = memory("dismiss", f"{FOLDER}/tabs.md", "--yes", code=1).err
    assert f"line 3 of {FOLDER}/tabs.md can't be read, mend it first: <<<<<<< HEAD" in told
    assert path.read_bytes() == before


def git(folder: Path, *words: str) -> int:
    """Exit status of git there."""
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", "-C", folder, *who, *words], capture_output=True, check=False).returncode


def test_two_machines_share_a_vault_by_git(tmp_path: Path) -> None:
    """As docs/how-to/sync-conflicts.md sets it up: what each generates is in nobody's way; a note that was changed on
    both sides is in use with neither text, and the review names it."""
    desk, laptop = (ForkedSandbox(tmp_path / name) for name in ("desk", "laptop"))
    remote = str(tmp_path / "remote.git")

    def commit(machine: ForkedSandbox) -> None:
        refresh_dashboard(vault_store(load_settings(machine.environment)))
        assert git(machine.vault, "add", "--all") == git(machine.vault, "commit", "--message=Notes") == 0

    def pull(machine: ForkedSandbox) -> bool:
        return git(machine.vault, "pull", "--no-rebase", "--no-edit", remote, "main") == 0

    def push(machine: ForkedSandbox) -> bool:
        return git(machine.vault, "push", remote, "HEAD:main") == 0

    assert git(tmp_path, "init", "--bare", remote) == git(desk.vault, "init") == 0
    (desk.vault / ".gitignore").write_text("_meta/dashboard.md\n", "utf-8")
    desk.memory("save", "preferences", "tabs", "--body", "Indent with tabs.")
    commit(desk)
    assert push(desk)
    assert git(tmp_path, "clone", "--branch=main", remote, str(laptop.vault)) == 0

    desk.memory("save", "preferences", "quotes", "--body", "Quote with single quotes.")
    laptop.memory("save", "preferences", "names", "--body", "Name tests like sentences.")
    commit(desk)
    commit(laptop)
    assert push(desk)
    assert pull(laptop)
    assert push(laptop)
    assert pull(desk)
    for machine in (desk, laptop):
        assert {Path(one["path"]).stem for one in machine.json("list", "--json")} == {"tabs", "quotes", "names"}
        assert (machine.vault / "_meta/dashboard.md").is_file()

    for machine, says in ((desk, "four spaces"), (laptop, "two spaces")):
        machine.memory("evolve", "tabs", f"Indent with {says}.", "agreed")
        commit(machine)
    assert push(desk)
    assert not pull(laptop)
    assert "tabs" not in {Path(one["path"]).stem for one in laptop.json("list", "--json")}
    assert "Indent" not in laptop.memory("recall", "indent with spaces")
    assert (
        "git left both sides of a merge in personal-private/preferences/tabs.md"
        in laptop.run("review", "--list").stderr
    )


def test_a_note_about_conflicts_is_no_copy() -> None:
    for name in ("conflicted copy.md", "what is a sync-conflict.md", "a_conflict-today.md", "on conflicts (git).md"):
        assert original_name(name) is None
        assert not is_conflict_copy(name)
        assert is_entry_name(name)


@pytest.mark.parametrize(
    ("choice", "text", "kept"),
    [("mine", None, MINE), ("theirs", None, THEIRS), ("merged", "# Tabs\n\nBoth.\n", "# Tabs\n\nBoth.\n")],
)
def test_one_text_stays_and_the_decision_can_be_taken_back(bed: Bed, choice: Any, text: str | None, kept: str) -> None:
    conflict(bed.vault)
    (copy,) = waiting_copies(bed.store)
    settle_copy(bed.journal, copy, choice, run="t", text=text)
    assert bed.files() == {NOTE: kept}
    assert bed.reviewer.undo_last() is not None
    assert bed.files() == {NOTE: MINE, COPY: THEIRS}


@pytest.mark.parametrize("choice", ["mine", "theirs"])
def test_what_was_taken_back_on_two_devices_stays_taken_back(bed: Bed, choice: Choice) -> None:
    """Whose lines of ids are kept is no question for a person: each is a decision that was made."""
    here, there = {("s1", "r1"), ("s2", "r2")}, {("s2", "r2"), ("s3", "r3")}
    put(bed.vault / TAKEN_BACK, text_with(EMPTY + "My words.\n", here))
    beside = put(bed.vault / "_meta/taken-back.sync-conflict-20260101-101010-ABCDEFG.md", text_with(EMPTY, there))
    (copy,) = waiting_copies(bed.store)
    settle_copy(bed.journal, copy, choice, run="t")
    assert not beside.exists()
    kept = (bed.vault / TAKEN_BACK).read_text("utf-8")
    assert evidence_of(kept) == here | there
    assert ("My words." in kept) == (choice == "mine")
    assert bed.reviewer.undo_last() is not None
    assert evidence_of(beside.read_text("utf-8")) == there


def test_a_copy_whose_note_is_gone_becomes_the_note(bed: Bed) -> None:
    conflict(bed.vault, mine=None)
    settle_copy(bed.journal, find_copy(bed.store, COPY), "theirs", run="t")
    assert bed.files() == {NOTE: THEIRS}


@pytest.mark.parametrize("edited", [NOTE, COPY])
def test_an_edited_text_is_asked_about_again(bed: Bed, edited: str) -> None:
    conflict(bed.vault)
    copy = find_copy(bed.store, COPY)
    (bed.vault / edited).write_text("edited in Obsidian\n", "utf-8")
    files = bed.files()
    with pytest.raises(EditConflict):
        settle_copy(bed.journal, copy, "theirs", run="t")
    assert bed.files() == files


def test_marks_left_in_a_merged_text_are_refused_and_secrets_replaced(bed: Bed) -> None:
    conflict(bed.vault)
    copy = find_copy(bed.store, COPY)
    assert copy.both().count("In Go.") == 1, "what both say stands there once"
    for text in (copy.both(), "", None):
        with pytest.raises(EntryInvalid):
            settle_copy(bed.journal, copy, "merged", run="t", text=text)
    token = "ghp_" + "b" * 36
    settle_copy(bed.journal, copy, "merged", run="t", text=f"Use tabs, not {token}.\n")
    assert token not in bed.files()[NOTE]


@pytest.mark.slow
def test_programs_see_and_decide_them(sandbox: ForkedSandbox) -> None:
    conflict(sandbox.vault)
    (item,) = sandbox.json("review", "--list")
    assert (item["kind"], item["path"], item["note"]) == ("sync-conflict", COPY, NOTE)
    assert "+Use spaces." in item["difference"]
    assert "another text of" in sandbox.memory("review", "--list")
    assert sandbox.run("review", "--decide", "tabs=theirs").returncode == 1
    done = json.loads(sandbox.memory("review", "--decide", f"{COPY}=theirs", "--json"))
    assert [one["verdict"] for one in done] == ["theirs kept"]
    assert (sandbox.vault / NOTE).read_text("utf-8") == THEIRS
    sandbox.memory("review", "--undo")
    assert (sandbox.vault / NOTE).read_text("utf-8") == MINE
    assert (sandbox.vault / COPY).read_text("utf-8") == THEIRS


@pytest.mark.slow
def test_undo_takes_no_older_choice_back_unasked(sandbox: ForkedSandbox) -> None:
    conflict(sandbox.vault)
    sandbox.memory("review", "--decide", f"{COPY}=theirs")
    conflict(sandbox.vault)
    terminal = Terminal(sandbox, ["review"])
    terminal.press("u", "[n]o")
    terminal.write("\r", "nothing was taken back")
    terminal.press("m")
    assert terminal.close() == 0
    assert (sandbox.vault / NOTE).read_text("utf-8") == MINE
