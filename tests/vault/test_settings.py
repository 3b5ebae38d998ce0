"""Settings: where they come from, and what a wrong one says."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.layout import explain_misplacement
from memoryvault.runtime.settings import Settings, child_environment, compile_snapshot, load_settings, value_in_force
from memoryvault.runtime.settings_table import SETTINGS, as_toml
from memoryvault.runtime.snapshot import read_snapshot, snapshot_path, write_snapshot

ENV = {"HOME": "/home/u"}


def load(tmp_path: Path, text: str, **env: str) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load_settings({**ENV, **env}, file)


def refusal(tmp_path: Path, text: str, **env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text, **env)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(tmp_path) + "/", "")


def test_defaults_hold_without_a_file(tmp_path: Path) -> None:
    settings = load_settings(ENV, tmp_path / "absent.toml")
    assert settings.vault_path is None
    assert settings.hosts.claude_config_dir == Path("/home/u/.claude")
    assert settings.origins == {}
    for row in SETTINGS:
        if row.type != "path":
            assert value_in_force(settings, row.name) == row.default


def test_the_file_goes_over_defaults_and_variables_over_the_file(tmp_path: Path) -> None:
    text = '[vault]\npath = "~/Obsidian/MemoryVault"\n\n[recall]\nk = 7\ntoken_budget = 100\n'
    settings = load(tmp_path, text, MEMORY_RECALL_K="9")
    assert settings.vault_path == Path("/home/u/Obsidian/MemoryVault")
    assert settings.recall.k == 9
    assert settings.recall.token_budget == 100
    assert settings.origins["recall.k"] == "MEMORY_RECALL_K"
    assert settings.origins["recall.token_budget"].endswith("config.toml")


def test_the_documented_variables_work() -> None:
    settings = load_settings(
        {
            **ENV,
            "MEMORY_CONFIG": "/nonexistent/c.toml",
            "MEMORY_VAULT_PATH": "/v/MemoryVault",
            "MEMORY_ENABLED": "off",
            "MEMORY_REVIEW_MODE": "silent",
            "AGENT_TOOLKIT_EMBEDDING_MODEL": "BAAI/bge-large-en-v1.5",
            "CLAUDE_CONFIG_DIR": "/c",
            "MEMORY_RECALL_CORE_WORDS": "80",
            "MEMORY_RECALL_K": "",
            "MEMORY_LOG_LEVEL": " ",
        }
    )
    assert settings.vault_path == Path("/v/MemoryVault")
    assert settings.memory.enabled is False
    assert settings.memory.review_mode == "silent"
    assert settings.embedding.model == "BAAI/bge-large-en-v1.5"
    assert settings.session_folders["claude"] == Path("/c/projects")
    assert settings.recall.core_words == 80
    assert settings.origins.keys().isdisjoint({"recall.k", "log.level"}), "an empty one is as good as none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[recall]\n\nk = 0\n", " recall.k is 0, but must be a whole number from 1 to 50"),
        ("[recall]\nk = true\n", " recall.k is true, but must be a whole number from 1 to 50"),
        ("research.seconds = nan\n", " research.seconds is nan"),
        ('[memory]\nreview_mode = "Auto"\n', " memory.review_mode is 'Auto', but must be one of interactive"),
        ("[memory]\nenabled = 1\n", " memory.enabled is 1, but must be true or false"),
        ('[vault]\npath = "a/b"\n', " vault.path is 'a/b', but must be an absolute path"),
        # An address with a password is not quoted.
        ('[research]\nsearxng = "https://me:geheimnis@x.example/"\n',
         " research.searxng is something else, but must be an address"),
        ("[recall]\ncore_word = 5\n", " there is no setting recall.core_word; `memory config show --reference` lists"),
        ("[recall]\nfoo = {a = 1}\n", " there is no setting recall.foo; "),
        ("k = 5\n", " there is no setting k; "),
        ("[zebra]\nstripes = 1\n", " there is no setting zebra.stripes; "),
        ("[recall\nk = 1\n", "1: not valid TOML"),
        ('[recall]\nk = 1\nx = "', "3: not valid TOML"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named_with_what_is_allowed(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text).startswith(f"config.toml:{message}")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("MEMORY_RECALL_CORE_WORDS", "not-a-number", "a whole number of at least 0"),
        ("MEMORY_ENABLED", "perhaps", "true or false"),
        ("MEMORY_VAULT_PATH", "./vault", "an absolute path"),
        ("MEMORY_REVIEW_MODE", "bogus", "one of interactive, auto, silent"),
    ],
)
def test_a_bad_variable_is_named_with_what_is_allowed(tmp_path: Path, variable: str, value: str, message: str) -> None:
    text = refusal(tmp_path, "", **{variable: value})
    assert text.startswith(f"environment variable {variable}: ")
    assert message in text


def test_a_file_that_is_not_text_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings(ENV, file)
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(ENV, tmp_path)


def test_a_child_gets_an_allow_listed_environment(tmp_path: Path) -> None:
    passed = {"PATH": "/usr/bin", "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": "/run/user/1", "MEMORY_REVIEW_MODE": "silent"}
    settings = load(
        tmp_path,
        "",
        **passed,
        PYTHONPATH="/evil",
        TMPDIR="/project/tmp",
        HTTPS_PROXY="http://evil",
        LD_PRELOAD="/evil.so",
        MEMORY_VAULT_PATH="~/v",
        MEMORY_STATE_DIR="~/s",
        MEMORY_SOMETHING_ELSE="x",
        MEMORY_REFLECTION_ENDPOINT="http://evil",
        MEMORY_WORKER_CHILD="1",
        ANTHROPIC_API_KEY="secret",
    )
    assert child_environment(settings) == {
        **passed,
        "HOME": "/home/u",
        "MEMORY_VAULT_PATH": "/home/u/v",
        "MEMORY_STATE_DIR": "/home/u/s",
        "MEMORY_CONFIG": str(tmp_path / "config.toml"),
        "HF_HUB_OFFLINE": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def test_a_child_reads_the_same_settings(tmp_path: Path) -> None:
    text = '[vault]\npath = "~/v"\n[recall]\nk = 3\n'
    settings = load(tmp_path, text, MEMORY_LOG_LEVEL="warning", CLAUDE_CONFIG_DIR="~/c")
    again = load_settings(child_environment(settings))
    assert again == settings
    assert again.state.root == settings.state.root


def test_every_default_is_itself_allowed(tmp_path: Path) -> None:
    text = "".join(f"{row.name} = {as_toml(row.default)}\n" for row in SETTINGS if row.default is not None)
    loaded, default = load(tmp_path, text), load_settings(ENV, tmp_path / "absent")
    assert (loaded.recall, loaded.hosts) == (default.recall, default.hosts)


@pytest.mark.parametrize(
    "name",
    [
        "research.network",
        "research.searxng",
        "reflection.miner",
        "reflection.endpoint",
        "reflection.model",
        "reflection.api_key_file",
        "reflection.agent_command",
        "reflection.daily_token_cap",
        "discovery.ask_model",
        "discovery.github_api",
        "discovery.daily_token_cap",
        *(row.name for row in SETTINGS if row.section == "mcp"),
    ],
)
def test_no_variable_gives_a_consent(tmp_path: Path, name: str) -> None:
    """A repository can set variables of the sessions in it."""
    (row,) = (row for row in SETTINGS if row.name == name)
    assert row.variable is None
    variable = "MEMORY_" + name.replace(".", "_").upper()
    for value in ("true", "openai", "https://a.repository", "/a/repository"):
        assert value_in_force(load(tmp_path, "", **{variable: value}), name) == row.default


# A repository can set variables for what runs in it; it cannot put its settings or state in place of yours


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


# The snapshot that hooks read instead of config.toml


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text("[recall]\nk = 4\n")
    return {
        "HOME": str(tmp_path),
        "MEMORY_CONFIG": str(tmp_path / "config.toml"),
        "MEMORY_STATE_DIR": str(tmp_path / "state"),
        "MEMORY_VAULT_PATH": str(tmp_path / "Vault\nwith = a\\line"),
    }


def test_what_was_compiled_is_read(user: dict[str, str]) -> None:
    compiled = compile_snapshot(user)
    assert read_snapshot(user) == compiled
    assert compiled["recall_k"] == "4"
    assert compiled["vault"] == user["MEMORY_VAULT_PATH"]
    assert compiled["enabled"] == "1"
    assert compiled["queue_db"] == compiled["state"] + "/queue.db"
    assert compiled["sessions_claude"] == user["HOME"] + "/.claude/projects"


def test_it_is_private_and_leaves_no_temporary_file(user: dict[str, str]) -> None:
    compile_snapshot(user)
    path = Path(snapshot_path(user))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, "installation"]


def test_a_changed_config_file_makes_it_invalid(user: dict[str, str]) -> None:
    compile_snapshot(user)
    Path(user["MEMORY_CONFIG"]).write_text("[recall]\nk = 40\n")
    assert read_snapshot(user) is None
    assert compile_snapshot(user)["recall_k"] == "40"
    Path(user["MEMORY_CONFIG"]).unlink()
    assert read_snapshot(user) is None
    assert compile_snapshot(user)["recall_k"] == "5"
    assert read_snapshot(user) is not None


def test_each_environment_has_its_own(user: dict[str, str]) -> None:
    compile_snapshot(user)
    assert read_snapshot({**user, "MEMORY_WORKER_CHILD": "1", "PWD": "/elsewhere"}) is not None, "the mark of our calls"
    other = {**user, "MEMORY_RECALL_K": "8"}
    assert read_snapshot(other) is None
    compile_snapshot(other)
    first, second = read_snapshot(user), read_snapshot(other)
    assert first is not None
    assert second is not None
    assert (first["recall_k"], second["recall_k"]) == ("4", "8")


def test_one_cut_short_anywhere_is_none(user: dict[str, str]) -> None:
    compile_snapshot(user)
    path = Path(snapshot_path(user))
    data = path.read_bytes()
    for size in range(0, len(data) - 1, 37):
        path.write_bytes(data[:size])
        assert read_snapshot(user) is None
