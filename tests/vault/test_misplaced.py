"""A repository can set variables for what runs in it; it cannot put its settings or state in place of yours."""

import os
import subprocess
from pathlib import Path

import pytest

from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.layout import explain_misplacement
from memoryvault.runtime.settings import compile_snapshot, load_settings
from memoryvault.runtime.snapshot import read_snapshot, write_snapshot


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "MEMORY_VAULT_PATH": str(tmp_path / "home" / "MemoryVault")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "work" / "shop"
    (root / "tools").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.mark.parametrize("variable", ["MEMORY_CONFIG", "MEMORY_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"])
def test_a_place_inside_a_repository_is_refused_and_named(env: dict[str, str], repository: Path, variable: str) -> None:
    env[variable] = str(repository / "tools" / "x")
    with pytest.raises(SettingsError, match=f"{variable} leads into a repository") as refused:
        load_settings(env)
    assert str(repository) in str(refused.value)


def test_a_link_into_a_repository_leads_there(env: dict[str, str], repository: Path, tmp_path: Path) -> None:
    (repository / "config.toml").write_text('[reflection]\nminer = "openai"\n')
    (tmp_path / "link.toml").symlink_to(repository / "config.toml")
    assert "leads into a repository" in explain_misplacement({**env, "MEMORY_CONFIG": str(tmp_path / "link.toml")})


@pytest.mark.parametrize("variable", ["MEMORY_CONFIG", "MEMORY_STATE_DIR"])
def test_a_relative_place_would_be_another_one_in_each_repository(env: dict[str, str], variable: str) -> None:
    assert f"{variable} must be an absolute path" in explain_misplacement({**env, variable: ".memory"})


def test_a_snapshot_that_a_repository_prepared_is_never_read(env: dict[str, str], repository: Path) -> None:
    """It names the program that hooks start."""
    values = compile_snapshot(env)
    hostile = {**env, "MEMORY_STATE_DIR": str(repository / "state")}
    write_snapshot(hostile, {**values, "python": str(repository / "tools" / "run")}, "absent")
    assert read_snapshot(hostile) is None
    assert read_snapshot(env) == values


def test_a_file_that_others_can_change_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    assert explain_misplacement({**env, "MEMORY_CONFIG": str(config)}) == ""
    config.chmod(0o666)
    assert "changed by other accounts" in explain_misplacement({**env, "MEMORY_CONFIG": str(config)})


def test_the_usual_place_may_be_kept_in_a_repository_of_the_user(env: dict[str, str]) -> None:
    """Dotfiles: the home folder or ~/.config is a work tree, or config.toml is a link into one."""
    home = Path(env["HOME"])
    dotfiles = home / "dotfiles"
    config = home / ".config" / "memoryvault"
    for root in (home, home / ".config", dotfiles):
        (root / ".git").mkdir(parents=True)
    config.mkdir()
    (dotfiles / "config.toml").write_text("[recall]\nk = 3\n")
    (config / "config.toml").symlink_to(dotfiles / "config.toml")
    usual = {**env, "XDG_CONFIG_HOME": str(home / ".config")}
    for allowed in (env, usual, {**env, "MEMORY_CONFIG": str(config / "config.toml")}):
        if os.uname().sysname != "Darwin" or allowed is env:
            assert explain_misplacement(allowed) == ""
    assert explain_misplacement({**env, "MEMORY_STATE_DIR": str(home / "state")}) == ""


def test_a_variable_without_effect_is_not_judged(env: dict[str, str], repository: Path, tmp_path: Path) -> None:
    env |= {"MEMORY_CONFIG": str(tmp_path / "c.toml"), "MEMORY_STATE_DIR": str(tmp_path / "s")}
    assert explain_misplacement({**env, "XDG_CONFIG_HOME": str(repository), "XDG_STATE_HOME": "relative"}) == ""
