"""Writing one setting keeps the rest of the user's file (cli/settings_file.py)."""

import errno
import json
from pathlib import Path

import pytest

from memoryvault.cli import settings_file
from memoryvault.cli.settings_file import write_setting
from memoryvault.hooks.install import EVENTS, STUB, installed_events, settings_file_of
from memoryvault.hooks.wiring import install_for, trusted_by_codex, uninstall_for
from memoryvault.runtime import hooklog
from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.settings import PartialSettings, load_partial_settings, load_settings
from memoryvault.tests.support.files import put
from memoryvault.tests.support.forked import ForkedSandbox
from memoryvault.tests.support.sandbox import Sandbox

OWN = '# mine\n[memory]\nreview_mode = "auto"  # never ask\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config.toml of the user's own."""
    return put(tmp_path / "config" / "config.toml", OWN)


def test_the_rest_of_the_file_stays_and_the_file_is_private(config: Path) -> None:
    write_setting(config, "vault", "path", "/notes")
    assert config.read_text() == OWN + '\n[vault]\npath = "/notes"\n'
    assert config.stat().st_mode & 0o777 == 0o600
    assert list(config.parent.iterdir()) == [config]


def test_a_link_into_the_users_dotfiles_stays_one_and_what_it_leads_to_is_written(config: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    config.rename(kept)
    config.symlink_to(kept)
    write_setting(config, "vault", "path", "/notes")
    assert config.is_symlink()
    assert 'path = "/notes"' in kept.read_text()


def test_a_file_that_cannot_be_read_as_toml_is_left_alone(config: Path) -> None:
    config.write_text("[vault\n")
    with pytest.raises(SettingsError, match=r"can't write .*config\.toml"):
        write_setting(config, "vault", "path", "/notes")
    assert config.read_text() == "[vault\n"


def test_a_file_that_cannot_be_written_gets_a_line_to_add_to_it(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(settings_file, "replace_file", refused)
    for section, key, value, line in (
        ("vault", "path", 'a "b"', r'path = "a \"b\""'),
        ("memory", "enabled", False, "enabled = false"),
    ):
        with pytest.raises(SettingsError) as told:
            write_setting(config, section, key, value)
        assert f"Permission denied; put `{line}` below `[{section}]` there by hand" in str(told.value)


# With a broken config.toml, uninstall, logs, hook-command and doctor still work


SYNTAX = "[memory\nenabled = true\n"
WRONG_TYPE = "[recall]\nk = 'many'\n"
UNKNOWN = "[recal]\nk = 5\n"


def readable(folder: Path, content: bytes) -> PartialSettings:
    config = str(put(folder / "config.toml", content))
    return load_partial_settings({"HOME": str(folder), "MEMORY_CONFIG": config, "MEMORY_STATE_DIR": f"{folder}/state"})


def test_a_wrong_value_costs_no_other_setting(tmp_path: Path) -> None:
    found = readable(tmp_path, b"[recall]\nk = 'many'\n[vault]\npath = '/v'\n")
    assert found.settings.vault_path == Path("/v")
    assert found.unread == {"recall.k"}
    assert [fault.split()[1] for fault in found.faults] == ["recall.k"]


@pytest.mark.parametrize("misspelt", [b"[vault]\npth = '/w'\n", b"[vaul]\npath = '/w'\n", b"vault = 3\n"])
def test_a_misspelt_name_may_be_that_of_any_setting(tmp_path: Path, misspelt: bytes) -> None:
    """Of a place, say: what is not known then is not taken for its default."""
    found = readable(tmp_path, misspelt + b"[recall]\nk = 7\n")
    assert len(found.faults) == 1
    assert {"vault.path", "hosts.claude_config_dir"} <= found.unread
    assert "recall.k" not in found.unread


@pytest.mark.parametrize(
    "fault", [b"[vault\n", b"=\n", b"a = " + b"[" * 100_000, b"a = [\n" * 5_000, b"a = " + b"{a = " * 99_999, b"# \xff"]
)
def test_of_a_file_that_is_no_toml_nothing_counts(tmp_path: Path, fault: bytes) -> None:
    found = readable(tmp_path, b"[recall]\nk = 7\n[vault]\npath = '/v'\n" + fault)
    assert (found.settings.vault_path, found.settings.recall.k) == (None, 5)
    assert len(found.faults) == 1
    assert {"recall.k", "vault.path"} <= found.unread


def test_a_host_whose_settings_are_brackets_without_end_is_named(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path)
    settings = load_settings(sandbox.environment)
    file = sandbox.root / "home" / ".claude" / "settings.json"
    file.write_text('{"hooks": ' + "[" * 100_000, "utf-8")
    with pytest.raises(SettingsError, match=rf"{file} is not valid JSON \(nested too deeply\)"):
        uninstall_for("claude", settings)
    put(settings.hosts.codex_home / "config.toml", "a = " + "[" * 100_000)
    assert not trusted_by_codex(settings)


@pytest.mark.parametrize(
    "odd",
    [
        "1",
        '{"hooks": 3}',
        '{"hooks": [7]}',
        f'{{"hooks": [{{"command": 3, "args": ["-I", "-S", "{STUB}", "Stop"]}}]}}',
    ],
)
def test_a_hook_of_another_shape_is_left_and_ends_nothing(tmp_path: Path, odd: str) -> None:
    settings = load_settings(Sandbox(tmp_path).environment)
    file = settings_file_of(settings)
    file.write_text(f'{{"hooks": {{"Stop": [{odd}]}}}}', "utf-8")
    before = json.loads(file.read_text("utf-8"))
    assert installed_events(settings) == {}
    install_for("claude", settings)
    assert set(installed_events(settings)) == set(EVENTS)
    uninstall_for("claude", settings)
    if str(STUB) not in odd:
        assert json.loads(file.read_text("utf-8")) == before


@pytest.mark.parametrize("damaged", ["claude", "codex"])
def test_one_agents_damaged_file_keeps_no_other_from_being_left(tmp_path: Path, damaged: str) -> None:
    sandbox = ForkedSandbox(tmp_path)
    settings = load_settings(sandbox.environment)
    files = {"claude": settings_file_of(settings), "codex": settings.hosts.codex_home / "hooks.json"}
    install_for("claude", settings)
    install_for("codex", settings)
    files[damaged].write_text("{", "utf-8")
    done = sandbox.run("uninstall")
    assert done.returncode == 1, "what may be ours is left"
    assert f"memory: ~/{files[damaged].parent.name}/{files[damaged].name} is not valid JSON" in done.stderr
    assert files.pop(damaged).read_text("utf-8") == "{"
    assert [file.exists() for file in files.values()] == [False]
    assert "there were no hooks" not in done.stdout


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Set up, with hooks, a vault that only the settings file names, and an agent's folder that only it names."""
    sandbox = ForkedSandbox(tmp_path, {"MEMORY_VAULT_PATH": ""})
    other = put(tmp_path / "other-claude" / "settings.json", '{"model": "opus"}')
    put(tmp_path / "config.toml", f"[hosts]\nclaude_config_dir = '{other.parent}'\n")
    sandbox.memory("init", "--yes", "--vault", str(sandbox.vault), "--history-days", "0")
    assert "Stop" in other.read_text("utf-8")
    return sandbox


def break_it(sandbox: Sandbox, content: str, *, forget: bool = False) -> None:
    """The file says something wrong at its beginning. `forget`: nor do hooks know what it said before."""
    path = sandbox.root / "config.toml"
    path.write_text(content + path.read_text("utf-8"), "utf-8")
    if forget:
        for snapshot in (sandbox.root / "state" / "run").glob("*.snapshot"):
            snapshot.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("content", [SYNTAX, WRONG_TYPE, UNKNOWN])
def test_uninstall_takes_the_hooks_out_of_where_they_are(sandbox: Sandbox, content: str) -> None:
    break_it(sandbox, content)
    usual = sandbox.root / "home" / ".claude" / "settings.json"
    usual.write_text('{"model": "sonnet"}', "utf-8")
    done = sandbox.run("uninstall")
    assert done.returncode == 0, done.stderr
    assert "config.toml:" in done.stderr
    assert json.loads((sandbox.root / "other-claude" / "settings.json").read_text("utf-8")) == {"model": "opus"}
    assert usual.read_text("utf-8") == '{"model": "sonnet"}'
    assert sandbox.vault.is_dir()


@pytest.mark.slow
def test_uninstall_says_what_it_could_not_know_and_leaves_it(sandbox: Sandbox) -> None:
    break_it(sandbox, SYNTAX, forget=True)
    done = sandbox.run("uninstall")
    assert done.returncode == 1
    assert "hosts.claude_config_dir" in done.stderr
    assert "vault.path could not be read" in done.stderr
    assert "Stop" in (sandbox.root / "other-claude" / "settings.json").read_text("utf-8"), "it is not known of"
    assert sandbox.vault.is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("content", [SYNTAX, WRONG_TYPE, UNKNOWN])
def test_the_log_can_be_read_and_a_hook_be_wired(sandbox: Sandbox, content: str) -> None:
    expected = sandbox.memory("config", "hook-command", "Stop")
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        hooklog.append(str(sandbox.state / "log" / "memoryvault.log"), "info", "hook", hook=event, result="ok")
    break_it(sandbox, content)
    logs = sandbox.run("service", "logs", "-n", "3")
    assert (logs.returncode, len(logs.stdout.splitlines())) == (0, 3)
    assert "config.toml:" in logs.stderr
    command = sandbox.run("config", "hook-command", "Stop")
    assert (command.returncode, command.stdout) == (0, expected)
    break_it(sandbox, "", forget=True)
    logs = sandbox.run("service", "logs", "-n", "3")
    if content == SYNTAX:
        assert (logs.returncode, logs.stdout) == (1, "")
        assert "whose logs can't be told" in logs.stderr


@pytest.mark.slow
@pytest.mark.parametrize("forget", [False, True])
def test_doctor_names_the_fault_and_tests_the_rest(sandbox: Sandbox, forget: bool) -> None:
    break_it(sandbox, SYNTAX, forget=forget)
    found = sandbox.diagnosis()
    assert found["settings"]["grade"] == "fault"
    assert "config.toml:1: not valid TOML" in found["settings"]["detail"]
    hooks_go_on = "hooks go by the settings from before" in found["settings"]["todo"]
    assert hooks_go_on != ("nothing is recorded" in found["settings"]["todo"])
    assert hooks_go_on != forget
    if forget:
        assert found["vault"]["grade"] == "fault"
        assert {"hooks", "service", "other agents"} <= found.keys()
    else:
        assert [what for what, finding in found.items() if finding["grade"] == "fault"] == ["settings"]
        assert found["hooks"]["grade"] == "ok"
        assert {"vault", "queue", "index", "worker", "model", "round trip"} <= found.keys()
