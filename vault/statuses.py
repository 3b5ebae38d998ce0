"""Statuses that take a note out of use; any other word, as `done` or `published`, is the user's own. Light module."""

from __future__ import annotations

OUT_OF_USE = (
    *("pending", "inbox", "incubating", "resolved", "superseded", "rejected", "dismissed", "archived"),
    *("conflict", "template", "unreadable"),
)
"""The last three are what is read into a note that git or Obsidian left unfinished (header.py)."""
OUT_OF_USE_JSON = "[" + ",".join([f'"{status}"' for status in OUT_OF_USE]) + "]"
"""For SQLite's json_each."""


def is_in_use(status: str) -> bool:
    """Whether a note with this status, in lower case or '', is in use as far as that goes."""
    return status not in OUT_OF_USE
