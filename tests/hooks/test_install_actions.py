"""The hooks of tool calls are wired by the user's word alone, and taken out byte for byte."""

import os

import pytest

from memoryvault.hooks.install import (
    ACTION_EVENTS,
    BACKUP_SUFFIX,
    EVENTS,
    actions_installed,
    install,
    install_actions,
    installed_events,
    settings_file_of,
    uninstall,
    uninstall_actions,
)
from memoryvault.runtime.settings import Settings

from .test_install import FILES


def write(settings: Settings, before: bytes | None) -> None:
    if before is not None:
        settings_file_of(settings).write_bytes(before)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_off_first", [False, True])
def test_uninstall_restores_every_byte_with_them_too(settings: Settings, name: str, is_off_first: bool) -> None:
    path, before = settings_file_of(settings), FILES[name]
    write(settings, before)
    listing = sorted(os.listdir(path.parent))
    assert not uninstall(settings).changed
    assert install(settings).changed
    assert set(installed_events(settings)) == set(EVENTS)
    if before is not None:
        assert path.with_name(path.name + BACKUP_SUFFIX).read_bytes() == before
    alone = path.read_bytes()
    assert not actions_installed(settings)
    assert install_actions(settings).changed
    assert set(installed_events(settings)) == {*EVENTS, *ACTION_EVENTS}
    assert not install_actions(settings).changed
    assert not install(settings).changed, "setting up again does not take them out"
    if is_off_first:
        assert uninstall_actions(settings).changed
        assert path.read_bytes() == alone
    assert uninstall(settings).restored
    assert (path.read_bytes() if path.exists() else None) == before
    assert sorted(os.listdir(path.parent)) == listing


@pytest.mark.parametrize("name", FILES)
def test_beside_the_plugin_they_come_and_go_alone(settings: Settings, name: str) -> None:
    path, before = settings_file_of(settings), FILES[name]
    write(settings, before)
    listing = sorted(os.listdir(path.parent))
    install_actions(settings)
    assert set(installed_events(settings)) == set(ACTION_EVENTS)
    assert uninstall_actions(settings).restored
    assert (path.read_bytes() if path.exists() else None) == before
    assert sorted(os.listdir(path.parent)) == listing
    assert not uninstall_actions(settings).changed


def test_an_event_of_tool_calls_that_had_no_hooks_is_restored(settings: Settings) -> None:
    path, before = settings_file_of(settings), b'{"hooks":{"PreToolUse":[]}}'
    write(settings, before)
    listing = sorted(os.listdir(path.parent))
    install(settings)
    install_actions(settings)
    assert uninstall(settings).restored
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == listing
