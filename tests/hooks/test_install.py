"""Claude Code's settings.json: merged into, and left as it was."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from memoryvault.hooks import install as module
from memoryvault.hooks.install import (
    ACTION_EVENTS,
    BACKUP_SUFFIX,
    EVENTS,
    actions_installed,
    installed_events,
    launcher_in,
    settings_file_of,
)
from memoryvault.hooks.wiring import hook_argv, install_for, uninstall_for, wire_actions
from memoryvault.runtime.atomic_file import replace_file
from memoryvault.runtime.errors import SettingsError
from memoryvault.runtime.settings import Settings
from memoryvault.tests.support.files import put

from .support import Sandbox

pytestmark = pytest.mark.hurried

OTHERS: dict[str, Any] = {
    "model": "opus",
    "hooks": {
        "UserPromptSubmit": [
            {"hooks": [{"type": "command", "command": 'python3 "$HOME/.memory/hook.py" prompt', "timeout": 3}]}
        ],
        "PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt", "args": []}]}],
    },
    "permissions": {"allow": ["Bash(ls:*)"]},
}
FILES = {
    "none": None,
    "empty": b"",
    "empty object": b"{}",
    "others": json.dumps(OTHERS, indent=2).encode() + b"\n",
    "tabs": json.dumps(OTHERS, indent="\t").encode(),
    "one line": json.dumps(OTHERS).encode(),
    "odd spacing": b'{ "model" :"opus",\r\n   "hooks":{ } ,"n": 1.50, "u": "\\u00e4\xc3\xa4" }\r\n\r\n',
    "windows line ends": json.dumps(OTHERS, indent=2).replace("\n", "\r\n").encode() + b"\r\n",
    "no newline at the end": json.dumps(OTHERS, indent=3).encode(),
    "hand-made": b'{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say"}]}]},\n\n\n  "model":\t"opus"\n  }',
    "bom": b"\xef\xbb\xbf{}\n",
    "empty event": b'{"hooks": {"Stop": []}}\n',
}


@pytest.mark.parametrize(
    ("enabled", "is_ours"),
    [
        ({"memory@memoryvault": True}, True),
        ({"memory@memoryvault": False}, False),
        ({}, False),
        ({"memory@tools": True, "memory@elsewhere": True}, False),
    ],
    ids=["on", "off", "not on", "another tool's"],
)
def test_our_plugin_is_found_where_it_is_on(settings: Settings, enabled: dict[str, bool], is_ours: bool) -> None:
    settings_file_of(settings).write_text(json.dumps({"enabledPlugins": enabled}))
    assert module.plugin_installed(settings) is is_ours


def test_after_other_changes_only_ours_is_taken_out_and_the_copy_stays(settings: Settings) -> None:
    path = settings_file_of(settings)
    path.write_text(json.dumps(OTHERS, indent=2))
    backup = install_for("claude", settings).backup
    document = json.loads(path.read_text())
    document["theme"] = "dark"
    document["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "notify"})
    path.write_text(json.dumps(document, indent=2))
    undone = uninstall_for("claude", settings)
    assert (undone.changed, undone.restored) == (True, False)
    left = json.loads(path.read_text())
    assert left == {
        **OTHERS,
        "theme": "dark",
        "hooks": {**OTHERS["hooks"], "Stop": [{"hooks": [{"type": "command", "command": "notify"}]}]},
    }
    assert backup is not None
    assert backup.exists()


@pytest.mark.parametrize("before", [None, b'{"theme": "dark"}'])
def test_the_copy_of_an_earlier_install_is_not_put_back(settings: Settings, before: bytes | None) -> None:
    """An uninstall after other changes leaves one."""
    path = settings_file_of(settings)
    path.with_name(f"{path.name}.memoryvault-backup").write_bytes(b'{"model":"opus"}')
    if before is not None:
        path.write_bytes(before)
    install_for("claude", settings)
    assert uninstall_for("claude", settings).restored
    assert (path.read_bytes() if path.exists() else None) == before
    assert not path.with_name(f"{path.name}.memoryvault-backup").exists()


def test_a_reformatted_file_is_restored_all_the_same(settings: Settings) -> None:
    """The host writes the file again now and then; that is no change of ours to keep."""
    path = settings_file_of(settings)
    path.write_bytes(FILES["odd spacing"] or b"")
    install_for("claude", settings)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=3))
    assert uninstall_for("claude", settings).restored
    assert path.read_bytes() == FILES["odd spacing"]


@pytest.mark.parametrize("content", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "\x00"])
def test_a_file_that_is_not_understood_is_not_touched(settings: Settings, content: str) -> None:
    path = settings_file_of(settings)
    path.write_text(content)
    for action in (install_for, uninstall_for):
        with pytest.raises(SettingsError, match=r"settings\.json"):
            action("claude", settings)
        assert path.read_text() == content
    assert os.listdir(path.parent) == ["projects", "settings.json"] or len(os.listdir(path.parent)) == 2


@pytest.mark.parametrize("earlier", [False, True])
def test_a_refused_change_leaves_no_copy(settings: Settings, monkeypatch: pytest.MonkeyPatch, earlier: bool) -> None:
    path = settings_file_of(settings)
    path.write_text('{"model": "opus"}\n')
    if earlier:
        path.with_name(path.name + BACKUP_SUFFIX).write_text("{}")
    before = sorted(os.listdir(path.parent))

    def refuse(target: Path, *rest: Any, **options: Any) -> None:
        if target == path:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        replace_file(target, *rest, **options)

    monkeypatch.setattr(module, "replace_file", refuse)
    with pytest.raises(SettingsError, match="cannot be written"):
        install_for("claude", settings)
    assert sorted(os.listdir(path.parent)) == before


def test_a_linked_file_stays_a_link_and_keeps_its_mode(sandbox: Sandbox, settings: Settings) -> None:
    real = put(sandbox.root / "dotfiles" / "settings.json", "{}\n")
    real.chmod(0o640)
    link = settings.hosts.claude_config_dir / "settings.json"
    link.symlink_to(real)
    install_for("claude", settings)
    assert link.is_symlink()
    assert len(json.loads(real.read_text())["hooks"]) == len(EVENTS)
    assert real.stat().st_mode & 0o777 == 0o640
    assert uninstall_for("claude", settings).restored
    assert real.read_text() == "{}\n"


@pytest.mark.parametrize("name", ["disableAllHooks", "allowManagedHooksOnly"])
def test_a_warning_when_who_manages_the_machine_has_switched_the_users_hooks_off(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    managed = tmp_path / "managed-settings.json"
    monkeypatch.setattr(module, "MANAGED_FILES", (tmp_path / "none.json", managed))
    managed.write_text("{ not JSON")
    assert module.switched_off(settings) == ""
    managed.write_text(json.dumps({name: True}))
    assert f"{managed} has {name} on" in install_for("claude", settings).warnings[0]
    assert module.switched_off(settings)


_json = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)
_hook = st.fixed_dictionaries({"type": st.just("command"), "command": st.text()})
_group = st.fixed_dictionaries({"hooks": st.lists(_hook, max_size=2)}, optional={"matcher": st.text()})
_hooks = st.dictionaries(st.sampled_from([*EVENTS, "PostToolUse"]), st.lists(_group, max_size=3))


@hypothesis_settings(max_examples=60)
@given(st.dictionaries(st.text(), _json, max_size=4), st.none() | _hooks)
def test_taking_out_undoes_putting_in(rest: dict[str, Any], hooks: dict[str, Any] | None) -> None:
    document = rest if hooks is None else {**rest, "hooks": hooks}
    if "hooks" in rest and hooks is None:
        return
    installed = module.add_entries(module.CLAUDE_WIRING, document, "/state/run/memoryvault-hook")
    assert module.add_entries(module.CLAUDE_WIRING, installed, "/state/run/memoryvault-hook") == installed
    undone = module.remove_entries(module.CLAUDE_WIRING, installed)
    empty = {event for event, groups in (hooks or {}).items() if not groups}
    expected = {key: value for key, value in (hooks or {}).items() if key not in empty}
    assert {k: v for k, v in undone.get("hooks", {}).items() if v} == expected
    assert {k: v for k, v in undone.items() if k != "hooks"} == {k: v for k, v in document.items() if k != "hooks"}


def test_the_settings_have_one_short_command_per_hook(settings: Settings) -> None:
    install_for("claude", settings)
    document = json.loads(settings_file_of(settings).read_text())
    for event in EVENTS:
        (group,) = document["hooks"][event]
        (hook,) = group["hooks"]
        assert set(hook) == {"type", "command", "timeout"}
        assert hook["command"] == f"{launcher_in(settings.state_root)} {event}"
        assert os.path.isabs(hook["command"])
    with pytest.raises(SettingsError, match="TeaTime"):
        hook_argv("TeaTime", launcher_in(settings.state_root))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_not_ours_keeps_its_format(settings: Settings, newline: str) -> None:
    """Users keep this file in version control; a formatter's lists in one line would all be a change."""
    written = """{
    "permissions": {"allow": ["Bash(ls:*)", "Read"],   "deny": []},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify"}]}],
        "PostToolUse": [ {"matcher": "Edit", "hooks": []} ]
    },
    "n": 1.50, "model": "opus"
}
""".replace("\n", newline)
    path = settings_file_of(settings)
    path.write_bytes(written.encode())
    install_for("claude", settings)
    installed = path.read_bytes().decode()
    for line in written.split(newline):
        assert line.removesuffix("],") in installed, line
    assert installed.count("\n") == installed.count(newline)
    path.write_bytes(installed.replace('"opus"', '"haiku"').encode())
    assert not uninstall_for("claude", settings).restored
    left = path.read_bytes().decode()
    assert left == written.replace("opus", "haiku")


_object = st.dictionaries(st.text(max_size=3), _json, max_size=4)
_nested = st.dictionaries(st.sampled_from(["a", "b", "hooks"]), _object | _json, max_size=3)


@hypothesis_settings(max_examples=200)
@given(_nested, _nested, st.sampled_from([None, 1, "\t"]))
def test_a_file_written_anew_holds_what_it_shall_whatever_its_format(
    before: dict[str, Any], after: dict[str, Any], indent: int | str | None
) -> None:
    written = module._dump(after, json.dumps(before, indent=indent).encode())
    assert json.loads(written) == after


# The hooks of tool calls are wired by the user's word alone, and taken out byte for byte


def write(settings: Settings, before: bytes | None) -> None:
    if before is not None:
        settings_file_of(settings).write_bytes(before)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_off_first", [False, True])
def test_uninstall_restores_every_byte_with_them_too(settings: Settings, name: str, is_off_first: bool) -> None:
    path, before = settings_file_of(settings), FILES[name]
    write(settings, before)
    listing = sorted(os.listdir(path.parent))
    assert not uninstall_for("claude", settings).changed
    assert install_for("claude", settings).changed
    assert set(installed_events(settings)) == set(EVENTS)
    if before is not None:
        assert path.with_name(path.name + BACKUP_SUFFIX).read_bytes() == before
    alone = path.read_bytes()
    assert not actions_installed(settings)
    assert wire_actions("claude", settings, on=True).changed
    assert set(installed_events(settings)) == {*EVENTS, *ACTION_EVENTS}
    assert not wire_actions("claude", settings, on=True).changed
    assert not install_for("claude", settings).changed, "setting up again does not take them out"
    if is_off_first:
        assert wire_actions("claude", settings, on=False).changed
        assert path.read_bytes() == alone
    assert uninstall_for("claude", settings).restored
    assert (path.read_bytes() if path.exists() else None) == before
    assert sorted(os.listdir(path.parent)) == listing


@pytest.mark.parametrize("name", FILES)
def test_beside_the_plugin_they_come_and_go_alone(settings: Settings, name: str) -> None:
    path, before = settings_file_of(settings), FILES[name]
    write(settings, before)
    listing = sorted(os.listdir(path.parent))
    wire_actions("claude", settings, on=True)
    assert set(installed_events(settings)) == set(ACTION_EVENTS)
    assert wire_actions("claude", settings, on=False).restored
    assert (path.read_bytes() if path.exists() else None) == before
    assert sorted(os.listdir(path.parent)) == listing
    assert not wire_actions("claude", settings, on=False).changed


def test_an_event_of_tool_calls_that_had_no_hooks_is_restored(settings: Settings) -> None:
    path, before = settings_file_of(settings), b'{"hooks":{"PreToolUse":[]}}'
    write(settings, before)
    listing = sorted(os.listdir(path.parent))
    install_for("claude", settings)
    wire_actions("claude", settings, on=True)
    assert uninstall_for("claude", settings).restored
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == listing
