"""Keep in the journal how to restore a note that the user dismissed or rejected, without its words.

The note itself stays in the vault with another status, so its earlier text is stored as a difference from its current
text: a common beginning and end, and the part between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from ..runtime.errors import EntryInvalid, PathRefused, VaultUnavailable
from ..vault.entry import DISMISSED, REJECTED, hash_of, parse_text
from ..vault.pending import is_idea_path
from .boundary import is_outside

CHANGED = "changed since"
"""Stands for the hash of a note that is no longer as the act left it."""
_NO = frozenset({DISMISSED, REJECTED})


def rejected_by(act: Mapping[str, Any]) -> frozenset[str]:
    """Return the paths of the notes that an act rejects, before and after a move."""
    written = _written(act)
    return (
        frozenset(c["path"] for c in act["changes"] if c["before"] is not None) if written is not None else frozenset()
    )


def without_rejected(act: Mapping[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """Return the journal's line of an act with the earlier text stored as a difference from the written one."""
    written = _written(act)
    if written is None:
        return line
    after = str(written["after"])
    for change in line["changes"]:
        before = change["before"]
        if before is not None:
            head = _common(before, after)
            tail = min(_common(before[::-1], after[::-1]), len(before) - head, len(after) - head)
            change["before"] = {
                "of": written["path"],
                "hash": hash_of(before),
                "head": head,
                "tail": tail,
                "text": before[head : len(before) - tail],
            }
    return line


def with_restored(line: Mapping[str, Any], read: Callable[[str], str | None]) -> Mapping[str, Any]:
    """Return the line with its texts restored, if the note is as the act left it; otherwise unrestored. `read` returns
    the text of a file."""
    if not any(isinstance(change["before"], dict) for change in line["changes"]):
        return line
    changes, lost = [], set()
    for change in line["changes"]:
        if isinstance(splice := change["before"], dict):
            after = _text(splice["of"], read)
            text = after[: splice["head"]] + splice["text"] + after[len(after) - splice["tail"] :]
            if hash_of(text) != splice["hash"]:
                text = splice["text"]
                lost.add(splice["of"])
            change = {**change, "before": text}
        changes.append(change)
    # An undo will find that the note was changed since, and leave it alone.
    changes = [{**change, "after_hash": CHANGED} if change["path"] in lost else change for change in changes]
    return {**line, "changes": changes}


def _common(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _written(act: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the only file that a review's act writes, if that is a note the user rejected."""
    written = [change for change in act["changes"] if change["after"] is not None]
    if act["actor"] != "review" or len(written) != 1 or act.get("moves"):
        return None
    change: Mapping[str, Any] = written[0]
    if is_outside(change["path"]) or any(is_idea_path(one["path"]) for one in act["changes"]):
        return None
    try:
        entry = parse_text(change["path"], change["after"])
    except EntryInvalid:
        return None
    return change if entry.effective_status in _NO else None


def _text(path: str, read: Callable[[str], str | None]) -> str:
    try:
        return read(path) or ""
    except (EntryInvalid, PathRefused, VaultUnavailable):
        return ""
