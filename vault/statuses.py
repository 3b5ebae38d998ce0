"""Statuses that take a note out of use; any other word, as `done` or `published`, is the user's own. Light module."""

from __future__ import annotations

OUT_OF_USE = (
    *("pending", "inbox", "incubating", "resolved", "superseded", "rejected", "dismissed", "archived"),
    *("conflict", "template", "unreadable"),
)
"""The last three are read into a note that git or Obsidian left unfinished (header.py)."""
OUT_OF_USE_JSON = "[" + ",".join([f'"{status}"' for status in OUT_OF_USE]) + "]"
"""The same for SQLite's json_each."""


def is_in_use(status: str) -> bool:
    """Whether this status, in lower case or '', leaves a note in use."""
    return status not in OUT_OF_USE
