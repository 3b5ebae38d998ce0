"""The approval without which no writer writes a file outside of `MemoryVault/`.

Only `services/boundary.py` creates one, by its rules; a test searches the code for any other place that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..runtime.errors import BoundaryRefused


class Consent(StrEnum):
    """How the user agreed to a write outside of the vault."""

    REQUESTED = "requested"
    """The user gave the command for it."""
    CONFIRMED = "confirmed"
    """The program or an agent proposed it, and the user agreed to this one write."""
    STANDING = "standing"
    """`memory.review_mode` is `silent`: the user agreed beforehand."""


@dataclass(frozen=True)
class Approval:
    """Permission to write one file outside of the vault."""

    path: Path
    consent: Consent


def require_approval(path: Path, approval: Approval | None) -> None:
    """Raise BoundaryRefused unless the approval is for this file."""
    if not isinstance(approval, Approval) or approval.path != path:
        raise BoundaryRefused(f"{path} lies outside MemoryVault/ and nobody has agreed to its being written")
