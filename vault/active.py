"""Which notes are entries in use: the one definition behind lists and counts.

An entry is in use while its status is `active` and its path has no special folder but `_always-load`. A note of one of
EXPLICIT_KINDS is not in use, nor is a note without content.
"""

from __future__ import annotations

from ..runtime.layout import ALWAYS_LOAD, INCUBATOR, WATCHLIST
from .automemory import COST_KIND, INDEX_KIND
from .entry import PATTERN_KIND, RESEARCH_KIND, Entry, words_of

EXPLICIT_KINDS = frozenset({RESEARCH_KIND, INDEX_KIND, COST_KIND})
"""Kinds that are listed and recalled only when a filter names them: texts of strangers, which must not come up by
themselves; indexes of topics, which would match every question that one of their topics matches; what sessions cost,
which answers no question."""

PLACE_OF_KIND = {"idea": INCUBATOR, PATTERN_KIND: WATCHLIST}
"""Kinds whose notes lie in a special folder and are not in use: a filter with one of them means those notes."""


def is_entry_place(path: str) -> bool:
    """Whether entries in use may have this vault-relative path."""
    return "_" not in path or all(part[:1] != "_" or part == ALWAYS_LOAD for part in path.split("/")[:-1])


def has_content(entry: Entry) -> bool:
    """Whether the note has a title of its own, or a text apart from headings."""
    if entry.title != words_of(entry.slug):
        return True
    return any(line.strip() and not line.lstrip().startswith("#") for line in entry.body.splitlines())


def is_entry(entry: Entry) -> bool:
    """Whether the note would be an entry in use if its status were `active`."""
    return is_entry_place(entry.path) and (entry.kind or "").lower() not in EXPLICIT_KINDS and has_content(entry)
