"""The other hosts' own files: merged into, and left as they were."""

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryvault.cli.context import Context
from memoryvault.cli.doctor import _other_agents
from memoryvault.cli.uninstall import remove_empty_folders
from memoryvault.hooks.install import HostWiring, add_entries, launcher_in, remove_entries
from memoryvault.hooks.wiring import WIRINGS, hook_argv, install_for, trusted_by_codex, uninstall_for, wired_events
from memoryvault.runtime.settings import Settings
from memoryvault.tests.support.command import Command
from memoryvault.tests.support.files import put

from ..hooks.support import Sandbox

pytestmark = pytest.mark.hurried

COMMAND = {"type": "command", "command": "notify", "timeout": 3}
OTHERS: Mapping[str, dict[str, Any]] = {
    "codex": {"hooks": {"Stop": [{"hooks": [COMMAND]}], "PreToolUse": [{"matcher": "Bash", "hooks": [COMMAND]}]}},
    "copilot": {"version": 1, "hooks": {"Stop": [{"type": "command", "bash": "notify", "timeoutSec": 3}]}},
    "antigravity": {"lint": {"enabled": False, "PostToolUse": [{"matcher": "x", "hooks": [COMMAND]}]}},
    "gemini": {"hooks": {"AfterAgent": [{"hooks": [COMMAND]}], "AfterTool": [{"matcher": "x", "hooks": [COMMAND]}]}},
}
HOSTS = tuple(host for host, wiring in WIRINGS.items() if host != "claude" and wiring.shape != "plugin")
"""OpenCode's plugin is a file of its own: test_opencode.py. Claude Code: tests/hooks/test_install.py."""
LAUNCHER = "/home/dev/.local/state/memoryvault/run/memoryvault-hook"


def files(sandbox: Sandbox) -> dict[str, bytes]:
    """All but the launcher, which stays: a session that is open goes on to run it."""
    return {name: (sandbox.root / name).read_bytes() for name in sandbox.files() if "memoryvault-hook" not in name}


@pytest.mark.parametrize("before", ["none", "empty", "object", "others", "odd"])
@pytest.mark.parametrize("host", HOSTS)
def test_uninstall_restores_every_byte(sandbox: Sandbox, settings: Settings, host: str, before: str) -> None:
    path = WIRINGS[host].file(settings)
    content = {
        "none": None,
        "empty": b"",
        "object": b"{}\n",
        "others": json.dumps(OTHERS[host], indent=4).encode(),
        "odd": json.dumps(OTHERS[host]).replace(": ", " :  ").encode() + b"\r\n\r\n",
    }[before]
    if content is not None:
        put(path, content)
    untouched = files(sandbox)
    installed = install_for(host, settings)
    assert installed.changed
    assert wired_events(host, settings) == tuple(WIRINGS[host].events)
    if content is not None:
        assert installed.backup is not None
        assert installed.backup.read_bytes() == content
    once = files(sandbox)
    assert not install_for(host, settings).changed
    assert files(sandbox) == once
    assert uninstall_for(host, settings).restored
    assert files(sandbox) == untouched
    assert not uninstall_for(host, settings).changed


@pytest.mark.parametrize("wiring", [WIRINGS[host] for host in ("claude", *HOSTS)], ids=lambda each: each.name)
def test_what_others_wrote_stays_in_its_order(wiring: HostWiring) -> None:
    others = OTHERS.get(wiring.name, OTHERS["codex"])
    wired = add_entries(wiring, others, LAUNCHER)
    assert add_entries(wiring, wired, LAUNCHER) == wired
    assert remove_entries(wiring, wired) == others
    assert list(wired)[: len(others)] == list(others)
    older = json.loads(json.dumps(wired).replace(LAUNCHER, "/old/place/run/memoryvault-hook"))
    assert older != wired
    assert add_entries(wiring, older, LAUNCHER) == wired, "hooks of an older installation are replaced"
    assert remove_entries(wiring, older) == others


def test_the_entries_have_the_documented_shape() -> None:
    codex = add_entries(WIRINGS["codex"], {}, LAUNCHER)
    assert set(codex) == {"hooks"}
    assert codex["hooks"]["SessionStart"][0]["matcher"]
    for (group,) in codex["hooks"].values():
        (hook,) = group["hooks"]
        assert set(hook) == {"type", "command", "timeout"}
    copilot = add_entries(WIRINGS["copilot"], {}, LAUNCHER)
    assert copilot["version"] == 1
    for (hook,) in copilot["hooks"].values():
        assert set(hook) == {"type", "bash", "timeoutSec"}
    (named,) = add_entries(WIRINGS["antigravity"], {}, LAUNCHER).values()
    assert named.pop("enabled") is True
    for (hook,) in named.values():
        assert set(hook) == {"type", "command", "timeout"}
    assert shlex.split(hook["command"]) == hook_argv("Stop", LAUNCHER, "antigravity")


@pytest.mark.parametrize(
    ("host", "content"),
    [
        ("copilot", '{"hooks": {"Stop": [{"type": "command", "bash": "say done"}]}}'),
        ("copilot", '{"version": 1, "hooks": {}}'),
        ("copilot", '{ "note": 1.10 }'),
        ("antigravity", '{"memoryvault": {"enabled": true, "Stop": []}}'),
    ],
)
def test_a_file_of_our_own_name_from_before_gets_its_bytes_back(settings: Settings, host: str, content: str) -> None:
    path = put(WIRINGS[host].file(settings), content)
    install_for(host, settings)
    assert uninstall_for(host, settings).restored
    assert path.read_text() == content
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_codex_is_said_to_want_trust_until_it_has_it(settings: Settings) -> None:
    home = settings.hosts.codex_home
    home.mkdir()
    assert any("/hooks" in warning for warning in install_for("codex", settings).warnings)
    events = ("session_start", "user_prompt_submit", "stop", "pre_compact")
    state = "".join(trust(f"{home}/hooks.json:{event}:0:0") for event in events)
    (home / "config.toml").write_text(state.replace("pre_compact", "post_compact"))
    assert any("/hooks" in warning for warning in install_for("codex", settings).warnings), "one is still to be trusted"
    (home / "config.toml").write_text(state)
    assert install_for("codex", settings).warnings == ()
    (home / "config.toml").write_text(state + "[features]\nhooks = false\n")
    assert "features.hooks" in install_for("codex", settings).warnings[0]


def trust(place: str) -> str:
    """A table of Codex's config.toml."""
    return f'[hooks.state."{place}"]\ntrusted_hash = "sha256:00"\n'


def test_trust_in_another_tools_hooks_is_none_in_ours(settings: Settings) -> None:
    """Codex names them by file, event, group and place; the user's own stand before ours."""
    path = put(WIRINGS["codex"].file(settings), json.dumps({"hooks": {"Stop": [{"hooks": [COMMAND]}]}}))
    config = path.with_name("config.toml")
    others = ("stop:0:0", "session_start:0:0", "user_prompt_submit:0:0", "pre_compact:0:0")
    config.write_text("".join(trust(f"{path}:{place}") for place in others))
    for _ in range(2):
        assert any("/hooks" in warning for warning in install_for("codex", settings).warnings)
    assert not trusted_by_codex(settings)
    config.write_text(config.read_text() + trust(f"{path}:stop:1:0"))
    assert trusted_by_codex(settings)


@pytest.mark.parametrize("config", ['hooks = "x"', "[[hooks]]\na = 1", "[hooks]\nstate = 3", "features = true"])
def test_a_config_of_codex_in_another_shape_is_no_trust(settings: Settings, config: str) -> None:
    put(settings.hosts.codex_home / "config.toml", config)
    assert any("/hooks" in warning for warning in install_for("codex", settings).warnings)
    assert not trusted_by_codex(settings)


def test_only_empty_folders_below_the_home_are_removed(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "srv" / "codex"
    (home / ".config" / "opencode").mkdir(parents=True)
    outside.mkdir(parents=True)
    remove_empty_folders(home / ".config" / "opencode" / "plugin.js", home, home / "ours")
    remove_empty_folders(outside / "hooks.json", home, home / "ours")
    assert not (home / ".config").exists()
    assert home.is_dir()
    assert outside.is_dir()


@pytest.mark.slow
def test_init_wires_the_hosts_that_are_named_and_uninstall_leaves_no_trace(sandbox: Sandbox, command: Command) -> None:
    claude = sandbox.home / ".claude" / "settings.json"
    put(sandbox.home / ".codex" / "config.toml", "")  # It is installed; the others are not.
    vault = ("--vault", str(sandbox.vault))
    told = command.json("init", "--yes", *vault, "--host", "codex", "--host", "antigravity")
    assert set(told["hosts"]) == {"codex", "antigravity"}
    assert not claude.exists()
    assert (sandbox.home / ".codex" / "hooks.json").is_file()
    assert not (sandbox.home / ".copilot").exists()
    command("init", "--yes", *vault, "--host", "copilot", "--host", "claude", "--host", "gemini")
    assert claude.is_file()
    assert len(list((sandbox.home / ".copilot" / "hooks").iterdir())) == 1
    command("uninstall")
    assert not any(path.is_file() for path in (sandbox.home / ".claude").rglob("*"))
    there = [host for host in (".codex", ".copilot", ".gemini") if (sandbox.home / host).exists()]
    assert there == [".codex"], "the folders that are empty now are gone, too"
    assert [path.name for path in (sandbox.home / ".codex").iterdir()] == ["config.toml"]


@pytest.mark.slow
def test_doctor_says_which_hosts_are_wired_and_which_is_experimental(sandbox: Sandbox) -> None:
    context = Context(sandbox.env)
    assert "none is wired" in _other_agents(context).detail
    install_for("copilot", context.settings)
    assert _other_agents(context).grade == "ok"
    install_for("antigravity", context.settings)
    finding = _other_agents(context)
    assert (finding.grade, "experimental" in finding.detail) == ("note", True)
    install_for("codex", context.settings)
    assert "/hooks" in _other_agents(context).todo


def test_the_command_names_the_host(sandbox: Sandbox, command: Command) -> None:
    launcher, *words = command.json("config", "hook-command", "PreInvocation", "--host", "antigravity")
    assert launcher == launcher_in(sandbox.state_root)
    assert os.access(launcher, os.X_OK), "what is wired by hand is there"
    assert words == ["PreInvocation", "--host", "antigravity"]
    told = command("config", "hook-command", "SessionStart", "--host", "antigravity", code=2)
    assert "PreInvocation" in told.err
