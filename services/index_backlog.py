"""Progress of an index that is being built for the first time, or rebuilt after damage: until then recall reads only a
part of the vault."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..index.catalog_reader import CatalogReader
from ..runtime.errors import MemoryVaultError, QueueUnavailable
from ..runtime.settings import Settings
from ..tasks.queue.enqueue import open_ledger
from ..vault.listing import list_notes

WALK = "index.reconcile"


@dataclass(frozen=True)
class Filling:
    """Progress of the first indexing: of the vault's notes, or of the passages that need a vector."""

    done: int
    total: int
    of: Literal["notes", "passages"]

    def describe(self) -> str:
        """Return the progress in one line."""
        what = "notes" if self.of == "notes" else "passages can be found by meaning"
        return f"the index is being filled: {self.done:,} of {self.total:,} {what}"


def filling_of(settings: Settings) -> Filling | None:
    """Return the progress; None if the index is complete, cannot be read, or is not being built.

    New notes in a complete index do not count: they are indexed within seconds.
    """
    with suppress(MemoryVaultError), closing(CatalogReader(Path(settings.state.index_db))) as reader:
        with reader.snapshot():
            found = reader.first_fill()
        if found is None:
            return None
        notes = len(list_notes(settings.required_vault_path).notes)
        # Otherwise some notes cannot be read, which time won't change.
        if found.notes < notes and _is_walked(settings):
            return Filling(found.notes, notes, "notes")
        if 0 < found.embedded < found.passages:
            return Filling(found.embedded, found.passages, "passages")
    return None


def _is_walked(settings: Settings) -> bool:
    try:
        with open_ledger(settings) as ledger:
            return bool(ledger.list_jobs(["queued", "running"], kind=WALK, most=1))
    except QueueUnavailable:
        return False
