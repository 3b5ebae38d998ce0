"""The snapshot that hooks read instead of config.toml."""

import stat
from pathlib import Path

import pytest

from memoryvault.runtime.settings import compile_snapshot
from memoryvault.runtime.snapshot import read_snapshot, snapshot_path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text("[recall]\nk = 4\n")
    return {
        "HOME": str(tmp_path),
        "MEMORY_CONFIG": str(tmp_path / "config.toml"),
        "MEMORY_STATE_DIR": str(tmp_path / "state"),
        "MEMORY_VAULT_PATH": str(tmp_path / "Vault\nwith = a\\line"),
    }


def test_what_was_compiled_is_read(env: dict[str, str]) -> None:
    compiled = compile_snapshot(env)
    assert read_snapshot(env) == compiled
    assert compiled["recall_k"] == "4"
    assert compiled["vault"] == env["MEMORY_VAULT_PATH"]
    assert compiled["enabled"] == "1"
    assert compiled["queue_db"] == compiled["state"] + "/queue.db"
    assert compiled["sessions_claude"] == env["HOME"] + "/.claude/projects"


def test_it_is_private_and_leaves_no_temporary_file(env: dict[str, str]) -> None:
    compile_snapshot(env)
    path = Path(snapshot_path(env))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, "installation"]


def test_a_changed_config_file_makes_it_invalid(env: dict[str, str]) -> None:
    compile_snapshot(env)
    Path(env["MEMORY_CONFIG"]).write_text("[recall]\nk = 40\n")
    assert read_snapshot(env) is None
    assert compile_snapshot(env)["recall_k"] == "40"
    Path(env["MEMORY_CONFIG"]).unlink()
    assert read_snapshot(env) is None
    assert compile_snapshot(env)["recall_k"] == "5"
    assert read_snapshot(env) is not None


def test_each_environment_has_its_own(env: dict[str, str]) -> None:
    compile_snapshot(env)
    assert read_snapshot({**env, "MEMORY_WORKER_CHILD": "1", "PWD": "/elsewhere"}) is not None, "the mark of our calls"
    other = {**env, "MEMORY_RECALL_K": "8"}
    assert read_snapshot(other) is None
    compile_snapshot(other)
    first, second = read_snapshot(env), read_snapshot(other)
    assert first is not None
    assert second is not None
    assert (first["recall_k"], second["recall_k"]) == ("4", "8")


def test_one_cut_short_anywhere_is_none(env: dict[str, str]) -> None:
    compile_snapshot(env)
    path = Path(snapshot_path(env))
    data = path.read_bytes()
    for size in range(0, len(data) - 1, 37):
        path.write_bytes(data[:size])
        assert read_snapshot(env) is None
