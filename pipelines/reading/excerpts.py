"""What of a message is shown with a candidate, without the secrets that only the whole message tells. Pure."""

from __future__ import annotations

from ..scrub import scrub_passage

EXCERPT_CHARS = 700


def excerpt_range(text: str, start: int, end: int) -> tuple[int, int]:
    """The passage around [start, end), cut between words."""
    if len(text) <= EXCERPT_CHARS:
        return 0, len(text)
    room = max(0, EXCERPT_CHARS - (end - start)) // 2
    low, high = max(0, start - room), min(len(text), end + room)
    while 0 < low < start and not text[low - 1].isspace():
        low += 1
    while end < high < len(text) and not text[high].isspace():
        high -= 1
    return low, high


def excerpt(text: str, low: int, high: int) -> str:
    """The passage [low, high), with a mark where it is cut."""
    if len(text) <= EXCERPT_CHARS:
        return text
    cut = scrub_passage(text, low, high).strip()
    return f"{'…' if low else ''}{cut}{'…' if high < len(text) else ''}"
