"""Two devices share a vault: decisions in notes are carried out by the one that the settings note names."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from memoryvault.tasks.device import SETTINGS_NOTE, acting_device, acts_here
from memoryvault.tests.support.forked import ForkedSandbox


def name(vault: Path, text: str) -> None:
    note = vault / SETTINGS_NOTE
    note.parent.mkdir(exist_ok=True)
    note.write_text(text, "utf-8")


def test_where_none_is_named_each_acts(tmp_path: Path) -> None:
    assert acting_device(tmp_path) is None
    assert acts_here(tmp_path)
    name(tmp_path, "---\ntags: [x]\n---\n\ndevice: not a setting\n")
    assert acts_here(tmp_path)


@pytest.mark.parametrize(
    ("named", "hostname", "acts"),
    [
        ("desk", "desk", True),
        ("Desk", "desk.local", True),
        ("desk.home.arpa", "DESK", True),
        ("desk", "laptop", False),
        ("desk", "desk2", False),
    ],
)
def test_the_named_one_acts(tmp_path: Path, named: str, hostname: str, acts: bool) -> None:
    name(tmp_path, f"---\ndevice: {named}\n---\n\n# Settings\n")
    assert acts_here(tmp_path, hostname) is acts


@pytest.mark.slow
def test_a_decision_in_a_note_waits_for_the_named_device(tmp_path: Path) -> None:
    sandbox = ForkedSandbox(tmp_path)
    sandbox.vault.mkdir(parents=True, exist_ok=True)
    note = sandbox.vault / "personal-private" / "_review" / "use-pnpm.md"
    note.parent.mkdir(parents=True)
    head = "---\ndecision: approve\nkind: preferences\nstatus: pending\n---\n\n"
    note.write_text(f"{head}# Use pnpm\n\nAlways use pnpm.\n", "utf-8")
    name(sandbox.vault, "---\ndevice: another-device\n---\n")
    sandbox.memory("worker", "--until-idle")
    assert note.exists()
    name(sandbox.vault, f"---\ndevice: {socket.gethostname()}\n---\n")
    sandbox.memory("worker", "--until-idle")
    assert not note.exists()
    assert (sandbox.vault / "personal-private" / "preferences" / "use-pnpm.md").exists()
