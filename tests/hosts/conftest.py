"""Fixtures of the hosts' tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from ..hooks.conftest import command, sandbox, settings
from ..hooks.support import Sandbox, answer_with, recall_service
from .payloads import RECALLED

__all__ = ["command", "recall_requests", "sandbox", "settings"]


@pytest.fixture
def recall_requests(sandbox: Sandbox) -> Iterator[list[dict[str, Any]]]:
    """The requests to a service that recalls one entry for any prompt; the vault has an always-load entry too."""
    sandbox.state.ensure()
    sandbox.entry("personal-private/_always-load/plain.md", "Answer in plain language.", always_load="true")
    sandbox.entry("personal-private/workflow/ship.md", RECALLED, kind="workflow")
    hit = {"path": "personal-private/workflow/ship.md", "slug": "ship", "score": 1.0}
    answer = answer_with(
        block=f"# MemoryVault\n\n{RECALLED}", status="Loaded 1 relevant entries: ship", paths=[hit["path"]], hits=[hit]
    )
    with recall_service(sandbox.state.recall_socket, answer) as requests:
        yield requests
