"""Fixtures of the hooks' tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.hooks import install, wiring
from memoryvault.runtime.settings import Settings, load_settings
from memoryvault.tests.support.command import Command

from .support import Sandbox, sandbox_at


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with sandbox_at(tmp_path) as made:
        yield made


@pytest.fixture
def settings(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of the sandbox, for installing without compiling the package again."""
    monkeypatch.setattr(install, "precompile", lambda: None)
    monkeypatch.setattr(wiring, "precompile", lambda: None)
    return load_settings(sandbox.env)


@pytest.fixture
def command(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, memory: Command) -> Command:
    """Run commands of the sandbox in this process."""
    for name in list(os.environ):
        if name.startswith(("MEMORY_", "XDG_", "CLAUDE", "CODEX")):
            monkeypatch.delenv(name)
    for name, value in {**sandbox.env, "MEMORY_CONFIG": str(sandbox.root / "config.toml")}.items():
        monkeypatch.setenv(name, value)
    return memory
