"""Kinds of entries: those in the vault, and the one that a misspelt new kind was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ..vault.entry import INCIDENT
from ..vault.store import VaultStore
from .output import note

LIKE = 0.75
"""difflib ratio from which two kinds count as the same, misspelt: that of `fix` and `fixes`."""


def kinds_of(store: VaultStore) -> set[str]:
    """The kinds of all entries, in lower case. Reads every note. Raises VaultUnavailable."""
    return {entry.kind.lower() for entry in store.readable() if entry.kind}


def report_missing(asked: Iterable[str], store: VaultStore) -> None:
    """Print the existing kinds for each requested kind that no entry has."""
    asked = list(asked)
    there = kinds_of(store) if asked else set()
    for kind in asked:
        if kind.lower() not in there:
            say_missing("the kind", kind, there)


def say_missing(what: str, asked: str, there: Iterable[str]) -> None:
    """Print that no entry has this kind or project, and those that exist."""
    note(f"memory: no entry has {what} {asked!r}; there are: {', '.join(sorted(there)) or 'none so far'}")


def meant_kind(kind: str, group: str, store: VaultStore) -> str:
    """The known kind that a new one resembles; '' if it is known itself or resembles none. Raises VaultUnavailable."""
    from ..pipelines.candidate import KIND_OF_CATEGORY  # imported here: lists do not need them
    from ..vault.render import RULE_KINDS

    built_in = {*KIND_OF_CATEGORY.values(), *RULE_KINDS, INCIDENT}
    if kind in built_in or (store.vault / group / kind).is_dir():
        return ""
    there = kinds_of(store)  # Only the first entry of a kind gets here.
    if kind in there:
        return ""
    known = sorted(built_in | there)
    return next(iter(get_close_matches(kind, known, n=1, cutoff=LIKE)), "")
