"""Where things are kept."""

import os
import stat
import sys
from pathlib import Path

import pytest

from memoryvault.runtime.layout import (
    SOCKET_PATH_LIMIT_BYTES,
    StatePaths,
    config_path,
    make_private_folder,
    resolve_within,
    special_folder,
    state_root,
    vault_id,
)

LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="Linux's folders")


@LINUX
def test_the_xdg_folders_hold_settings_and_state() -> None:
    assert config_path({"HOME": "/h"}) == "/h/.config/memoryvault/config.toml"
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}) == "/c/memoryvault/config.toml"
    relative = {"HOME": "/h", "XDG_CONFIG_HOME": "c"}
    assert config_path(relative) == "/h/.config/memoryvault/config.toml", "as if it were not set: so the specification"
    assert state_root({"HOME": "/h"}) == "/h/.local/state/memoryvault"
    assert state_root({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == "/s/memoryvault"


def test_macos_keeps_both_in_application_support_but_for_variables_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert config_path({"HOME": "/h"}) == "/h/Library/Application Support/memoryvault/config.toml"
    assert state_root({"HOME": "/h"}) == "/h/Library/Application Support/memoryvault/state"
    env = {"HOME": "/h", "MEMORY_CONFIG": "~/x.toml", "MEMORY_STATE_DIR": "/s/"}
    assert config_path(env) == "/h/x.toml"
    assert state_root(env) == "/s"


def test_a_vault_id_is_a_short_readable_name_and_follows_the_real_folder(tmp_path: Path) -> None:
    vault = tmp_path / "My Notes" / "MemoryVault"
    vault.mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(vault)
    name = vault_id(str(vault))
    assert name.startswith("my-notes-memoryvault-")
    assert len(name.rsplit("-", 1)[1]) == 16
    assert vault_id(str(link)) == vault_id(str(vault) + "/") == name
    assert vault_id(str(tmp_path / "other" / "MemoryVault")) != name
    long = vault_id("/дом/память" + "x" * 200)
    assert (long.isascii(), len(long) <= 57) == (True, True)
    for path, begins in (("/дом/память", "vault-"), ("/Bücher/Müll", "bucher-mull-"), ("/日本語/a", "a-")):
        assert vault_id(path).startswith(begins)


def test_a_state_folder_that_was_opened_to_others_is_closed_again(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    make_private_folder(str(folder))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_sockets_move_to_a_short_path_where_the_platforms_limit_bites() -> None:
    deep = StatePaths("/" + "d" * 120)
    other = StatePaths("/" + "e" * 120)
    assert len(deep.recall_socket) <= SOCKET_PATH_LIMIT_BYTES
    assert deep.recall_socket.startswith(f"/tmp/memoryvault-{os.getuid()}/")
    assert deep.recall_socket != other.recall_socket
    assert deep.worker_lock.startswith(deep.root)
    assert deep.sockets not in deep.folders(), "whoever binds makes it, and takes it away again"


@pytest.mark.parametrize(
    ("path", "special"),
    [
        ("personal-private/preferences/a.md", ""),
        ("personal-private/_inbox/a.md", "_inbox"),
        ("personal-private/_archive/personal-private/_inbox/a.md", "_archive"),
        ("personal-projects/p/_review/a.md", "_review"),
        ("personal-private/idea/_index.md", ""),
        ("_meta/sources.md", "_meta"),
        ("a/_inbox.md", ""),
        ("a/reference/inbox-notes.md", ""),
    ],
)
def test_a_folder_with_an_underscore_is_special_wherever_it_stands(path: str, special: str) -> None:
    assert special_folder(path) == special


# Hooks and worker agree on which transcripts may be read


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    folder.mkdir()
    (folder / "own.jsonl").write_text("", "utf-8")
    return folder


def test_a_transcript_in_a_hosts_folder_is_resolved_written_or_not(root: Path, tmp_path: Path) -> None:
    (root / "link.jsonl").symlink_to(root / "own.jsonl")
    (tmp_path / "dotfiles").symlink_to(root)
    assert resolve_within(f"{root}/link.jsonl", [str(root)]) == str(root / "own.jsonl")
    assert resolve_within(f"{root}/later/own.jsonl", [str(root)]) == f"{root}/later/own.jsonl"
    assert resolve_within(f"{tmp_path}/dotfiles/own.jsonl", [f"{tmp_path}/dotfiles/"]) == str(root / "own.jsonl")


@pytest.mark.parametrize(
    ("path", "roots"),
    [
        ("{root}-other/own.jsonl", "{root}"),
        ("own.jsonl", "{root}"),
        *((f"{{root}}/{name}", "{root}") for name in ("two\nlines", "escape\x1b[2J", "byte\udcff", "zero\0")),
        ("{root}/own.jsonl", ""),  # An empty root is not the working directory.
        ("{root}/own.jsonl", "."),
    ],
)
def test_what_leads_elsewhere_or_cannot_be_printed_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, roots: str
) -> None:
    monkeypatch.chdir(root)
    assert resolve_within(path.format(root=root), [roots.format(root=root)]) is None
