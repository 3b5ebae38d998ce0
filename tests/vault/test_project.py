"""Which project a folder belongs to; every repository here is made by git itself."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from memoryvault.tests.support.files import put
from memoryvault.vault.project import is_left_out, project_of, project_slug


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=env, check=True, capture_output=True, timeout=30)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "My_App.v2"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def test_every_folder_of_a_repository_is_the_same_project(repository: Path, tmp_path: Path) -> None:
    (repository / "src" / "deep").mkdir(parents=True)
    assert project_of(str(repository), "/h") == "my-app-v2"
    (tmp_path / "link").symlink_to(repository)
    for folder in (repository / "src" / "deep", tmp_path / "link"):
        assert project_of(str(folder), "/h") == "my-app-v2"


def test_worktrees_agree_with_their_repository(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "wt-abc123"))
    assert project_of(str(tmp_path / "wt-abc123"), "/h") == "my-app-v2"
    git(repository, "worktree", "add", "-q", "-b", "in", str(repository / ".claude" / "worktrees" / "x"))
    assert project_of(str(repository / ".claude" / "worktrees" / "x"), "/h") == "my-app-v2"


def test_a_bare_repository_and_its_worktrees_agree_also_once_they_are_gone(tmp_path: Path, repository: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repository), "tool.git")
    git(tmp_path / "tool.git", "worktree", "add", "-q", str(tmp_path / "checkout"), "main")
    assert project_of(str(tmp_path / "tool.git"), "/h") == "tool"
    assert project_of(str(tmp_path / "checkout"), "/h") == "tool"
    assert project_of(str(tmp_path / "checkout.worktrees" / "gone"), "/h") == "tool"
    assert project_of(str(repository / ".worktrees" / "gone" / "src"), "/h") == "my-app-v2"


def test_a_hidden_bare_repository_takes_the_folders_name(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    git(folder, "clone", "-q", "--bare", str(repository), ".bare")
    (folder / ".git").write_text("gitdir: ./.bare\n")
    git(folder, "worktree", "add", "-q", "main-tree", "main")
    assert project_of(str(folder), "/h") == "service"
    assert project_of(str(folder / "main-tree"), "/h") == "service"


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path, repository: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "libs/inner")
    assert project_of(str(outer / "libs" / "inner"), "/h") == "inner"


def test_outside_git_it_is_the_folder(tmp_path: Path) -> None:
    """Of a lost work tree in `~/code/.worktrees`, which may hold those of several, it is not known whose it was."""
    for folder in (tmp_path / "Some Notes", tmp_path / "shop" / ".worktrees" / "notes"):
        folder.mkdir(parents=True)
    assert project_of(str(tmp_path / "Some Notes"), "/h") == "some-notes"
    assert project_of(str(tmp_path / "Gone"), "/h") == "gone"
    assert project_of(str(tmp_path / "shop" / ".worktrees" / "notes"), "/h") == "notes"
    assert project_of(str(tmp_path / "shop" / ".worktrees" / "shop-fix"), "/h") == "shop-fix"


@pytest.mark.parametrize(
    ("cwd", "project"),
    [
        ("/h/code/shop/.worktrees/1", "shop"),
        ("/h/code/shop/.worktrees/ann/new-till", "shop"),
        ("/h/code/shop/.claude/worktrees/brave-otter", "shop"),
        ("/h/code/shop.worktrees/till", "shop"),
        ("/h/code/shop/.worktrees/1/.claude/worktrees/2", "shop"),
        # Nothing there says whose they were.
        ("/h/.worktrees/1", "1"),
        ("/h/code/shop/worktrees/4", "4"),
        ("/h/code/shop/.worktrees", "worktrees"),
    ],
)
def test_a_worktree_that_is_gone_with_its_repository_has_the_repositorys_name(cwd: str, project: str) -> None:
    assert project_of(cwd, "/h") == project


@pytest.mark.parametrize("cwd", ["", "/", "relative/path", "."])
def test_no_project(cwd: str) -> None:
    assert project_of(cwd, "/h") == ""


def test_the_home_folder_is_no_project_even_as_a_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "scratch").mkdir()
    assert project_of(str(tmp_path), str(tmp_path)) == ""
    assert project_of(str(tmp_path / "scratch"), str(tmp_path)) == "scratch"


def test_a_damaged_git_file_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "thing"
    folder.mkdir()
    for damaged in (b"\xff\x00 nonsense", b"gitdir: \x00", b"gitdir:", b"x" * 10_000_000, b"gitdir: " + b"../" * 5000):
        (folder / ".git").write_bytes(damaged)
        assert re.fullmatch("[a-z0-9-]*", project_of(str(folder), "/h")), damaged[:20]


@pytest.mark.parametrize("place", [".git", "real/commondir"])
def test_a_pipe_in_the_place_of_a_git_file_hangs_nobody(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "thing"
    (folder / "real").mkdir(parents=True)
    if place != ".git":
        (folder / ".git").write_text("gitdir: real")
    os.mkfifo(folder / place)
    assert project_of(str(folder), "/h") in ("thing", "real")


def test_git_is_not_run_and_what_it_would_run_neither(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository's own configuration names programs that git runs."""
    ran = tmp_path / "ran"
    program = put(tmp_path / "bin" / "git", f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with (repository / ".git" / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {ran}"\n\tpager = "touch {ran}"\n')
    assert project_of(str(repository), "/h") == "my-app-v2"
    assert not ran.exists()


def test_a_git_file_can_only_name_another_project(repository: Path, tmp_path: Path) -> None:
    """A limit that the threat model states: a repository may pass for another, as its name lets it anyway."""
    folder = tmp_path / "stranger"
    put(folder / ".git", f"gitdir: {repository}/.git")
    assert project_of(str(folder), "/h") == "my-app-v2"


@pytest.mark.parametrize(
    ("name", "slug"), [("Crème_Brûlée", "creme-brulee"), ("a--b", "a-b"), ("", ""), ("проект", "project-[0-9a-f]{8}")]
)
def test_a_name_is_made_of_ascii_words(name: str, slug: str) -> None:
    assert re.fullmatch(slug, project_slug(name))


@pytest.mark.parametrize("said", ["off", "OFF\n", "# secret customer\noff\n"])
def test_a_project_is_left_out_by_a_file_in_it_or_above_in_its_repository(repository: Path, said: str) -> None:
    deep = repository / "src" / "deep"
    deep.mkdir(parents=True)
    for place in (deep, repository / "src", repository):
        assert not is_left_out(str(deep), "/h")
        (place / ".memoryvault").write_text(said)
        assert is_left_out(str(deep), "/h")
        (place / ".memoryvault").unlink()
    (repository.parent / ".memoryvault").write_text(said)
    assert not is_left_out(str(deep), "/h"), "above the repository"


def test_the_work_trees_of_a_project_that_is_left_out_are_too(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "wt"))
    assert not is_left_out(str(tmp_path / "wt"), "/h")
    (repository / ".memoryvault").write_text("off\n")
    assert is_left_out(str(tmp_path / "wt"), "/h")


@pytest.mark.parametrize("said", ["", "on", "offer", "turned off"])
def test_only_the_word_off_leaves_out(tmp_path: Path, said: str) -> None:
    (tmp_path / ".memoryvault").write_text(said)
    assert not is_left_out(str(tmp_path), str(tmp_path))


def test_a_folder_or_a_pipe_of_that_name_is_no_switch(tmp_path: Path) -> None:
    (tmp_path / ".memoryvault").mkdir()
    assert not is_left_out(str(tmp_path), str(tmp_path))
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / ".memoryvault")
    assert not is_left_out(str(tmp_path / "a"), str(tmp_path))
