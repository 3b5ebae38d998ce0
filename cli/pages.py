"""The how-to pages, which the package carries with what they link to: where to read on, for whoever has no clone of
the repository."""

from __future__ import annotations

from pathlib import Path

HOW_TO = Path(__file__).resolve().parents[1] / "docs" / "how-to"


def how_to(name: str) -> str:
    """The page's file, as this installation has it."""
    return str(HOW_TO / f"{name}.md")
