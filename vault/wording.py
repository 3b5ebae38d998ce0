"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 note`, `2 notes`; `many` where an s does not make it: `1 entry`, `1,200 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
