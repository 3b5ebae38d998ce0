"""The property `decision` of a note that waits: what the user writes into it in Obsidian or an editor."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import EditConflict, EntryInvalid, EntryNotFound, PathRefused
from ..vault.entry import Entry, parse_entry
from ..vault.header import skim
from ..vault.store import VaultStore

DECISION = "decision"
DECISION_ERROR = "decision_error"
"""In it the note is told why its decision could not be carried out."""
SETTLED_SECONDS = 60.0
"""A decision that makes no sense may be half typed; the note is told so when it has lain for this long."""


class Reported(StrEnum):
    """Whether a note says in its header what is wrong with its decision."""

    NOW = "now"
    BEFORE = "before"
    LATER = "later"
    """Somebody may be writing there: look again after SETTLED_SECONDS."""
    NOT = "not"
    """It was edited just now, or cannot be written."""


@dataclass(frozen=True)
class DecisionProblem:
    """A note whose decision could not be carried out."""

    proposal: str
    """Its path; `^` and a key for a line of a list."""
    problem: str
    reported: Reported = Reported.NOT
    """Whether the note itself says so."""


def report_problem(store: VaultStore, path: str, problem: str) -> Reported:
    """Say it in the note, unless somebody is just writing there."""
    with suppress(EditConflict, EntryNotFound, EntryInvalid, PathRefused, OSError):
        entry = store.read(path)
        if abs(time.time() - (store.vault / path).stat().st_mtime) < SETTLED_SECONDS:
            return Reported.LATER
        fields = {DECISION_ERROR: scrub(problem, Policy.SECRETS), "updated": entry.updated}
        told = store.update(path, entry.content_hash, fields=fields)
        return Reported.BEFORE if told.content_hash == entry.content_hash else Reported.NOW
    return Reported.NOT


def clear_problem(store: VaultStore, path: str) -> None:
    """What the note was told of an earlier decision says nothing of the one that it has now."""
    with suppress(EditConflict, EntryNotFound, EntryInvalid, PathRefused, OSError):
        entry = store.read(path)
        if DECISION_ERROR in entry.extra:
            store.update(path, entry.content_hash, fields={DECISION_ERROR: None, "updated": entry.updated})


def may_be_decided(head: bytes) -> bool:
    """May there be such a property? A quick test, since most notes have none."""
    return DECISION.encode() in head.lower()


def decision_of(entry: Entry) -> object:
    """Its value, however its name is capitalised; of a list, which Obsidian may have made of it, the first. None
    without one."""
    return _first(_named(entry.extra))


def read_decision(path: str, head: bytes) -> str:
    """The decision as text, '' without one. YAML's `yes` and `no` are `approve` and `reject`."""
    value = decision_of(parse_entry(path, head))
    if value is True or value is False:
        return "approve" if value else "reject"
    return str(value if value is not None else _named(skim(head.decode("utf-8", "replace"))[0]) or "").strip()


def decision_keys(entry: Entry) -> frozenset[str]:
    """Names of its properties that are of the decision, as they are written there and as we write them."""
    return frozenset({DECISION, DECISION_ERROR, *(key for key in entry.extra if key.lower() == DECISION)})


def _named(fields: Mapping[str, object]) -> object:
    return next((value for key, value in fields.items() if key.lower() == DECISION and value is not None), None)


def _first(value: object) -> object:
    if isinstance(value, list):
        return value[0] if value else None
    return value
