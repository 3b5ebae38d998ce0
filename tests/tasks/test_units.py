"""The worker as a service of the login: the files written, the manager's commands, and their removal."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from memoryvault.tasks.queue.units import ServiceManagerUnavailable, SystemdUser


class Machine:
    """A home, and a stand-in for the manager's command that records its arguments."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.bin = root / "bin"
        self.said = root / "said"
        self.running = root / "running"
        for folder in (self.home, self.bin):
            folder.mkdir()
        self.env = {"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin"}

    def stand_in(self, name: str, *cases: str) -> None:
        """Install `name` as a shell script of these `case` branches over its arguments."""
        script = f'#!/bin/sh\necho "$*" >> {self.said}\ncase "$*" in\n' + "\n".join(cases) + "\nesac\n"
        path = self.bin / name
        path.write_text(script)
        path.chmod(0o755)

    def calls(self) -> list[str]:
        return self.said.read_text().splitlines() if self.said.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def linux(machine: Machine) -> Machine:
    machine.stand_in(
        "systemctl",
        f"*restart*) touch {machine.running};;",
        f"*disable*) rm -f {machine.running};;",
        f"*is-active*) test -e {machine.running};;",
    )
    return machine


def only_changes(calls: Sequence[str]) -> list[str]:
    return [call for call in calls if "is-active" not in call and "show-environment" not in call]


def test_a_unit_is_written_enabled_started_and_removed(linux: Machine) -> None:
    manager = SystemdUser(linux.env)
    assert manager.install()
    assert manager.definition == linux.home / ".config" / "systemd" / "user" / "memoryvault.service"
    changes = ["--user daemon-reload", "--user enable memoryvault.service", "--user restart memoryvault.service"]
    assert only_changes(linux.calls()) == changes
    assert manager.state().running
    assert not manager.install()
    assert only_changes(linux.calls()) == changes, "a second install changes nothing"
    assert manager.remove()
    assert not manager.definition.exists()
    assert not manager.state().running
    assert not manager.remove()


def test_the_unit_names_the_vault_and_nothing_of_the_project_it_was_installed_from(linux: Machine) -> None:
    strange = '/notes/50% "of" $me/MemoryVault'
    text = SystemdUser(
        {**linux.env, "MEMORY_VAULT_PATH": strange, "PYTHONPATH": "/evil", "HTTPS_PROXY": "http://evil"}
    ).text()
    assert 'Environment="MEMORY_VAULT_PATH=/notes/50%% \\"of\\" $me/MemoryVault"' in text
    assert "evil" not in text
    assert "MEMORY_VAULT_PATH" not in SystemdUser(linux.env).text(), "it is named in the settings file"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.slow
def test_systemd_itself_finds_no_fault_in_the_unit(linux: Machine) -> None:
    manager = SystemdUser({**linux.env, "MEMORY_VAULT_PATH": '/notes/50% "of" $me/MemoryVault'})
    manager.install()
    checked = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(manager.definition)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.defpath, "XDG_RUNTIME_DIR": str(linux.home), "HOME": str(linux.home)},
    )
    ours = [line for line in checked.stderr.splitlines() if "memoryvault.service" in line]
    assert ours == []


def test_without_a_manager_the_line_says_that_nothing_is_lost(machine: Machine) -> None:
    machine.env["PATH"] = str(machine.bin)
    manager = SystemdUser(machine.env)
    with pytest.raises(ServiceManagerUnavailable, match="first hook of a session starts the worker"):
        manager.install()
    assert not manager.definition.exists()
    assert not manager.state().installed


def test_the_managers_own_words_are_passed_on(machine: Machine) -> None:
    machine.stand_in("systemctl", '*) echo "Failed to connect to bus" >&2; exit 1;;')
    with pytest.raises(ServiceManagerUnavailable, match="Failed to connect to bus"):
        SystemdUser(machine.env).install()
