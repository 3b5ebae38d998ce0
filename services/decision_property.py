"""The property `decision` of a waiting note, which the user edits in Obsidian or an editor."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from ..pipelines.scrub import Policy, scrub
from ..runtime.errors import (
    EditConflict,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    PathRefused,
    VaultUnavailable,
)
from ..vault.entry import Entry
from ..vault.header import skim
from ..vault.store import VaultStore

log = logging.getLogger(__name__)

DECISION = "decision"
DECISION_ERROR = "decision_error"
"""Property that tells why a decision could not be carried out."""
SETTLED_SECONDS = 60.0
"""A wrong decision may be half typed, so the note is told about it only after this time."""


@dataclass(frozen=True)
class DecisionOutcome:
    """The result of a decision. `verdict`: approved, merged, rejected, skipped or superseded; surfaced or not surfaced;
    of an idea: kept, archived, deleted, restored or promoted; of a pattern: promoted, dismissed or deferred."""

    proposal: str
    """Path of the note that was decided on."""
    verdict: str
    path: str
    """Path of the note after the decision."""
    archived: str | None = None
    """Path of the entry that it replaced."""
    listed_in: str | None = None
    """The user's own file outside the vault that now lists the idea."""
    effect: str = ""
    """What else the approval does; '' for nothing."""

    @property
    def told(self) -> str:
        """The outcome in one line."""
        verdict = "approved, in place of an older entry" if self.archived else self.verdict
        effect = f", and {self.effect}" if self.effect else ""
        also_in = f", and in {self.listed_in}" if self.listed_in else ""
        old = f"; archived: {self.archived}" if self.archived else ""
        return f"{verdict}{effect}: {self.path}{also_in}{old}"


@dataclass(frozen=True)
class DecisionProblem:
    """A note whose decision could not be carried out."""

    proposal: str
    """Its path; plus `^` and a key for a line of a list."""
    problem: str
    may_be_typed: bool = False
    """Somebody may be writing in the note: check again after SETTLED_SECONDS."""


def apply_written(
    store: VaultStore,
    notes: Iterable[tuple[str, str]],
    decide: Callable[[str, str], list[DecisionOutcome]],
    still_owned: Callable[[], bool],
) -> list[DecisionOutcome | DecisionProblem]:
    """Carry out the decisions (path, text) written in notes; one that cannot be carried out is stated in its note.

    Raises VaultUnavailable.
    """
    results: list[DecisionOutcome | DecisionProblem] = []
    for path, written in notes:
        if not still_owned():
            break
        try:
            results += decide(path, written)
        except VaultUnavailable:
            raise
        except MemoryVaultError as error:
            # If the note itself is gone, another process has decided. Anything else missing is the note's problem.
            if not isinstance(error, EntryNotFound) or store.exists(path):
                results.append(report_problem(store, path, str(error)))
    return results


def report_problem(store: VaultStore, path: str, problem: str) -> DecisionProblem:
    """State the problem in the note, unless somebody is editing it. The log does not quote what the user wrote."""
    try:
        entry = store.read(path)
        if abs(time.time() - (store.vault / path).stat().st_mtime) < SETTLED_SECONDS:
            return DecisionProblem(path, problem, may_be_typed=True)
        fields = {DECISION_ERROR: scrub(problem, Policy.SECRETS), "updated": entry.updated}
        if store.update(path, entry.content_hash, fields=fields).content_hash != entry.content_hash:
            log.warning("%s: its decision could not be carried out; it says why itself", path)
    except (EditConflict, EntryNotFound, EntryInvalid, PathRefused, OSError):
        log.warning(
            "%s: its decision could not be carried out; `memory review` says why when it is decided there", path
        )
    return DecisionProblem(path, problem)


def clear_problem(store: VaultStore, path: str) -> None:
    """Remove a stated problem that belongs to an earlier decision."""
    with suppress(EditConflict, EntryNotFound, EntryInvalid, PathRefused, OSError):
        entry = store.read(path)
        if DECISION_ERROR in entry.extra:
            store.update(path, entry.content_hash, fields={DECISION_ERROR: None, "updated": entry.updated})


def read_decision(entry: Entry) -> str:
    """Return the property as text, whatever its capitalisation, '' without one: the first of a list, which Obsidian may
    have made of it. YAML's `yes` and `no` mean `approve` and `reject`."""
    value = _named(entry.extra)
    if isinstance(value, list):
        value = value[0] if value else None
    if value is True or value is False:
        return "approve" if value else "reject"
    return str(value if value is not None else _named(skim(entry.text)[0]) or "").strip()


def decision_keys(entry: Entry) -> frozenset[str]:
    """Return the names of the decision's properties, as written in the note and in our own spelling."""
    return frozenset({DECISION, DECISION_ERROR, *(key for key in entry.extra if key.lower() == DECISION)})


def _named(fields: Mapping[str, object]) -> object:
    return next((value for key, value in fields.items() if key.lower() == DECISION and value is not None), None)
