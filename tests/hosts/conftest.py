"""Fixtures of the hosts. tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryvault.vault.layout import leave_socket_folder, make_socket_folder

from ..hooks.support import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """An untouched home, vault and project; a test may put sockets where ours would be."""
    made = Sandbox(tmp_path)
    sockets = (made.state.recall_socket, made.state.wake_socket)
    if made.state.sockets != made.state.run:
        make_socket_folder(sockets[0])
    yield made
    for path in sockets:
        Path(path).unlink(missing_ok=True)
    leave_socket_folder(sockets[0])
