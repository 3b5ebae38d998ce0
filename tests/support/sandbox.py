"""The demo's sandbox for tests: a second try on a busy machine gives its hooks more time (support/hurry.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryvault.demo import sandbox

from .hurry import patient

OPTIONS = 5
"""A host runs `python -I -S -c <code> <script> <event> …`."""


class Sandbox(sandbox.Sandbox):
    """As the demo's."""

    def hook(self, event: str, payload: Mapping[str, Any], *, argv: list[str] | None = None) -> str:
        command = self.hook_argv(event) if argv is None else argv
        return super().hook(event, payload, argv=[*command[:OPTIONS], *patient(command[OPTIONS:])])
