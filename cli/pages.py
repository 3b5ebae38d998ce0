"""Paths of the how-to pages, which are installed with the package."""

from __future__ import annotations

from pathlib import Path

HOW_TO = Path(__file__).resolve().parents[1] / "docs" / "how-to"


def how_to(name: str) -> str:
    """Path of a page in this installation."""
    return str(HOW_TO / f"{name}.md")
