"""The proof, asked for by every writer, that the user wants a file outside `MemoryVault/` written.

Only `tasks/boundary.py` makes one: there it is decided. A test walks the code for anything else that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .errors import BoundaryRefused


class Consent(StrEnum):
    """Why a write outside is wanted by the user."""

    REQUESTED = "requested"
    """The user gave the command that writes it."""
    CONFIRMED = "confirmed"
    """Proposed by the program or an agent; the user said yes to this very write."""
    STANDING = "standing"
    """`memory.review_mode` is `silent`: said yes beforehand."""


@dataclass(frozen=True)
class Approval:
    """One file outside the vault may be written, and why."""

    path: Path
    consent: Consent


def require_approval(path: Path, approval: Approval | None) -> None:
    """Raises BoundaryRefused unless the approval is for this file."""
    if not isinstance(approval, Approval) or approval.path != path:
        raise BoundaryRefused(f"{path} lies outside MemoryVault/ and nobody has agreed to its being written")
