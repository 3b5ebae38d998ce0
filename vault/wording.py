"""Wording of messages: numbers with their nouns, texts on one line. Light module: hooks import it."""

from __future__ import annotations

CUT = " …"
"""Marks the end of a text that was cut."""
LEAST_LEFT_OUT = 16
"""Characters: a text longer by no more than this is not cut, since the mark would save nothing."""


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 note`, `2 notes`. `many` is the plural if it is not `one` with an s: `1,200
    entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def one_line(text: str) -> str:
    """`text` with each run of white space made one space, and none at its ends."""
    return " ".join(text.split())


def cut(text: str, characters: int, leeway: int = LEAST_LEFT_OUT) -> str:
    """`text` on one line; if it is longer than about `characters`, cut after a word, with `CUT` appended.

    `leeway`: by so much it may be longer and is not cut.
    """
    line = one_line(text)
    if len(line) <= characters + leeway:
        return line
    kept = line[: characters + 1].rpartition(" ")[0]
    if len(kept) < characters // 2:  # One long word, such as an address, fills most of the line.
        kept = line[:characters]
    return (kept.rstrip(" ,;:.-–—(") or kept) + CUT
