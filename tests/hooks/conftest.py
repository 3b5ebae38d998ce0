"""Fixtures of the hooks' tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.hooks import install, wiring
from memoryvault.runtime.settings import Settings, load_settings

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
