"""Which notes are entries in use: the one meaning of what lists show and figures count.

An entry is in use while it is active and lies in no special folder but `_always-load`. Kinds that come up only when
they are named are none (an index of topics, what a session cost, what was looked up), and no more is a note that says
nothing.
"""

from __future__ import annotations

from .automemory import COST_KIND, INDEX_KIND
from .entry import ACTIVE, RESEARCH_KIND, Entry, words_of
from .layout import ALWAYS_LOAD

NEVER_UNNAMED = frozenset({RESEARCH_KIND, INDEX_KIND, COST_KIND})
"""Kinds that are shown only when they are named: text of strangers must not come up by itself, a list of topics would
answer every question that one of them answers, and figures answer none."""


def is_place_of_entries(path: str) -> bool:
    """Does the vault-relative path lie where entries in use do?"""
    return "_" not in path or all(part[:1] != "_" or part == ALWAYS_LOAD for part in path.split("/")[:-1])


def says_nothing(entry: Entry) -> bool:
    """A note without a title of its own, and without a text but headings."""
    if entry.title != words_of(entry.slug):
        return False
    return not any(line.strip() and not line.lstrip().startswith("#") for line in entry.body.splitlines())


def is_entry(entry: Entry) -> bool:
    """Would it be an entry in use, were it active?"""
    return (
        is_place_of_entries(entry.path)
        and (entry.kind or "").lower() not in NEVER_UNNAMED
        and not says_nothing(entry)
    )  # fmt: skip


def is_in_use(entry: Entry) -> bool:
    """Is it an entry in use?"""
    return entry.effective_status == ACTIVE and is_entry(entry)
