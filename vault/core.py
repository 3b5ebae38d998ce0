"""The core: always-load entries in the order in which a session's start gives them, within a budget of words.

Light module: the hook of a session's start and `memory health` choose by it alike.
"""

from __future__ import annotations

from .evidence import strip_evidence
from .render import field_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

BYTES_PER_WORD = 12
"""A text without spaces (Chinese, a key) counts as many words as it has so many bytes."""
_PRIORITY_ORDER = {"high": 0, "normal": 1, "low": 2}
_BAN_VERBS = ("do", "does", "must", "should", "may", "can", "shall", "is", "are", "will")
_BAN_OPENERS = ("no", "avoid", "stop", "without")


def is_ban(text: str) -> bool:
    """Whether the first line of `text`, without its heading, forbids something ("never …", "do not …", "no …")."""
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and line[0] != "#"), "")
    words = first.lower().replace("’", "'").replace(",", " ").replace(";", " ").split()
    for at, word in enumerate(words):
        word = word.strip("*_\"'`.:")
        if word in ("never", "dont", "cannot", "nobody") or word.endswith("n't"):
            return True
        if word == "not" and at and words[at - 1] in _BAN_VERBS:
            return True
    return bool(words) and words[0].strip("*_\"'`") in _BAN_OPENERS


def count_words(text: str) -> int:
    """Count the words of `text`; at least one for every BYTES_PER_WORD bytes."""
    return max(len(text.split()), len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_WORD)


def _rank(entry: Any) -> tuple[int, bool, bool, int, str]:
    """Rank by priority; then the user's own entries before the project's, bans first, the most confirmed first; then by
    path."""
    priority = str(field_of(entry, "priority") or "normal").lower()
    return (
        _PRIORITY_ORDER.get(priority, 1),
        bool(field_of(entry, "project")),
        not is_ban(str(field_of(entry, "body") or "")),
        -int(field_of(entry, "occurrences") or 1),
        str(field_of(entry, "path") or field_of(entry, "slug") or ""),
    )


def select_core(entries: Iterable[Any], words: int) -> tuple[list[Any], list[Any]]:
    """Return (entries within the budget, the others), each in their order. `words`: the budget; 0: no limit.

    After one that is too long, shorter ones may still fit. `entries` have path, body, project, priority and
    occurrences, as attributes or as items.
    """
    kept, left_out, left = [], [], words
    for entry in sorted(entries, key=_rank):
        size = count_words(strip_evidence(str(field_of(entry, "body") or "")))
        if words <= 0 or size <= left:
            kept.append(entry)
            left -= size
        else:
            left_out.append(entry)
    return kept, left_out
