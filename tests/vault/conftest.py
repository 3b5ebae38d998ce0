"""An empty vault and its store, on a fixed day."""

from datetime import date
from pathlib import Path

import pytest

from memoryvault.vault.store import VaultStore


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "MemoryVault").mkdir()
    return tmp_path / "MemoryVault"


@pytest.fixture
def store(vault: Path, tmp_path: Path) -> VaultStore:
    return VaultStore(vault, tmp_path / "state" / "vault.lock", lambda: date(2026, 7, 1))
