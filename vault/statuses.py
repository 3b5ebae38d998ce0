"""Statuses that take a note out of use; any other word, as `done` or `published`, is the user's own, unless it is one
of ours misspelt. Light module."""

from __future__ import annotations

OUT_OF_USE = (
    *("pending", "inbox", "incubating", "resolved", "superseded", "rejected", "dismissed", "archived"),
    *("conflict", "template", "unreadable"),
)
"""The last three are read into a note that git or Obsidian left unfinished (header.py)."""
OUT_OF_USE_JSON = "[" + ",".join([f'"{status}"' for status in OUT_OF_USE]) + "]"
"""The same for SQLite's json_each."""

_SPELT = ("active", "approved", *OUT_OF_USE[:8])
"""What a misspelt status may mean."""

LONG = 10
"""Letters from which on no other word is within two of one of ours."""


def meant_status(status: str) -> str:
    """Return the status that this one, in lower case, is meant to be: one of ours with the same first letter and
    another one wrong, or two left out, doubled or swapped, or in a long word replaced; else the word itself."""
    if status in _SPELT or len(status) < 5:
        return status
    return next((word for word in _SPELT if word[0] == status[0] and _is_slip(status, word)), status)


def _is_slip(status: str, word: str) -> bool:
    if _is_within(status, word, 1):
        return True
    fewer, more = sorted((status, word), key=len)
    is_foreign = any(fewer.count(letter) > more.count(letter) for letter in fewer)
    return (not is_foreign or len(word) >= LONG) and _is_within(status, word, 2)


def _is_within(one: str, other: str, edits: int) -> bool:
    """Whether at most so many letters were left out, added, replaced or swapped with the next one."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    if not edits or not one or not other:
        return max(len(one), len(other)) <= edits
    changed = [(one[1:], other), (one, other[1:]), (one[1:], other[1:])]
    if one[:2] == other[1::-1]:
        changed.append((one[2:], other[2:]))
    return any(_is_within(*pair, edits - 1) for pair in changed)


def is_in_use(status: str) -> bool:
    """Whether this status, in lower case or '', leaves a note in use."""
    return status not in OUT_OF_USE
