"""Numbers in sentences, and texts that are too long for their line."""

from __future__ import annotations

CUT = " …"
"""Stands where a text goes on."""
LEAST_LEFT_OUT = 16
"""Characters: so few more are shown, since the mark in place of a word or two would save nothing."""


def counted(number: int, one: str, many: str = "") -> str:
    """`1 note`, `2 notes`; `many` where an s does not make it: `1 entry`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cut(text: str, characters: int) -> str:
    """The text on one line; one that is longer than about `characters` ends at a word, with `CUT` behind it."""
    line = " ".join(text.split())
    if len(line) <= characters + LEAST_LEFT_OUT:
        return line
    kept = line[: characters + 1].rpartition(" ")[0]
    if len(kept) < characters // 2:  # One word, such as an address, takes up most of it.
        kept = line[:characters]
    return (kept.rstrip(" ,;:.-–—(") or kept) + CUT
