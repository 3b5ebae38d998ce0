"""Which files of a vault are notes, found by walking its folders."""

import os
from pathlib import Path

import pytest

from memoryvault.runtime import paths
from memoryvault.runtime.paths import SF_DATALESS, is_downloaded
from memoryvault.vault import listing
from memoryvault.vault.listing import list_left_out
from memoryvault.vault.store import VaultStore


def put(vault: Path, name: str) -> None:
    (vault / name).parent.mkdir(parents=True, exist_ok=True)
    (vault / name).write_text("x")


def test_walking_leaves_out_what_is_not_a_note(store: VaultStore, vault: Path) -> None:
    for name in (
        "b.md",
        "a.md",
        "_inbox/i.md",
        "z/Note with spaces é.md",
        ".obsidian/x.md",
        ".trash/y.md",
        "z/.c.md.icloud",
        "z/n.txt",
        "z/n.sync-conflict-20260701-120000-ABCDEFG.md",
        "z/n (Anna's conflicted copy 2026-07-01).md",
        "z/n (Conflicted copy phone 202607011200).md",
        "z/n_conflict-20260701-120000.md",
        "z/n (SFConflict a@b.c 2026-07-01).md",
    ):
        put(vault, name)
    os.mkfifo(vault / "pipe.md")
    (vault / "folder.md").mkdir()
    assert list(store.walk()) == ["a.md", "b.md", "_inbox/i.md", "z/Note with spaces é.md"]


def test_one_walk_finds_the_notes_and_beside_them_the_copies_of_a_conflict_even_in_the_trash(
    store: VaultStore, vault: Path
) -> None:
    copy = "a.sync-conflict-20260701-120000-ABCDEFG.md"
    for name in ("a.md", copy, "_trash/old/b.md", f"_trash/old/{copy}", "z/_trash/c.md", f".obsidian/{copy}"):
        put(vault, name)
    (vault / f"z/{copy}").symlink_to(vault / "a.md")
    assert store.list_notes() == (["a.md"], [copy, f"_trash/old/{copy}"])
    assert [*store.walk(put_away=True)] == ["a.md", copy, f"_trash/old/{copy}", "_trash/old/b.md", "z/_trash/c.md"]


def test_of_special_folders_only_the_outermost_counts(store: VaultStore, vault: Path) -> None:
    for name in (
        "_inbox/a.md",
        "g/_inbox/_archive/b.md",
        "g/_archive/_inbox/c.md",
        "g/d.md",
        "g/_inbox/_trash/e.md",
        "_trash/_inbox/f.md",
        ".obsidian/_inbox/g.md",
        "g.md/_inbox/h.md",
    ):
        put(vault, name)
    (vault / "linked").symlink_to(vault / "g")
    assert [*store.walk_special({"_inbox"})] == ["_inbox/a.md", "g/_inbox/_archive/b.md", "g.md/_inbox/h.md"]


def test_what_a_walk_leaves_out_unasked_is_known(vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what nobody misses: dot-folders, the trash, other files, and links to what is walked in its own place."""
    (vault / "g" / "_trash").mkdir(parents=True)
    (vault / "g" / "a.md").write_text("x")
    (tmp_path / "away").mkdir()
    for name, target in (
        ("g/disk", tmp_path / "away"),
        ("g/lost.md", tmp_path / "nothing"),
        ("g/_trash/old", tmp_path / "away"),
        ("g/picture.png", tmp_path / "a.png"),
        ("alias", vault / "g"),
        (".obsidian", tmp_path / "away"),
    ):
        (vault / name).symlink_to(target)
    assert list_left_out(vault) == (["g/disk", "g/lost.md"], [], [])
    monkeypatch.setattr(listing, "is_downloaded_child", lambda child: False)
    assert list_left_out(vault).in_the_cloud == ["g/a.md"]


def test_a_file_that_is_only_in_the_cloud_is_known_by_its_flag(tmp_path: Path) -> None:
    class Status:
        st_flags = SF_DATALESS

    assert not is_downloaded(Status())  # type: ignore[arg-type]  # os.stat_result has st_flags on macOS only
    assert is_downloaded(tmp_path.stat())


def test_a_walk_asks_for_that_flag_where_there_is_one(
    store: VaultStore, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (vault / "a.md").write_text("x")
    asked: list[os.stat_result] = []

    def is_elsewhere(status: os.stat_result) -> bool:
        asked.append(status)
        return False

    monkeypatch.setattr(paths, "is_downloaded", is_elsewhere)
    monkeypatch.setattr(paths, "_HAS_FLAGS", True)
    assert (list(store.walk()), len(asked)) == ([], 1)
    monkeypatch.setattr(paths, "_HAS_FLAGS", False)
    assert (list(store.walk()), len(asked)) == (["a.md"], 1)


def test_a_folder_that_cannot_be_read_is_told(store: VaultStore, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.md", "locked/b.md"):
        put(vault, name)
    scandir = os.scandir

    def refused(path: str) -> object:  # Permissions do not stop root, who may run the tests.
        if "locked" in path:
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert [entry.path for entry in store.readable()] == ["a.md"]
    told = "the folder locked/ cannot be read: Permission denied"
    assert store.passed_over == {"locked/": told}
    assert list_left_out(vault).unreadable == [told]
    store.passed_over.clear()
    assert list(store.walk_special({"_review"})) == []
    assert store.passed_over == {"locked/": told}
