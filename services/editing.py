"""Edit: the user gives an entry in use another text. `memory review --undo` takes it back."""

from __future__ import annotations

from ..pipelines.likeness import statement_of
from ..runtime.errors import EditConflict, EntryInvalid, EntryNotFound
from ..vault.entry import fingerprint, parse_entry
from ..vault.pending import pending_folder
from ..vault.scrubbed import Scrubbed
from .dismissing import reason_against
from .journal import Change, hash_of, text_of
from .reviewing import Reviewer

RUN = "edit"
"""How the runs of the journal begin in which an entry was edited."""


def edit(reviewer: Reviewer, path: str, body: Scrubbed, expected_hash: str) -> bool:
    """Replace the body of the entry at `path`; False where it says that already.

    `expected_hash` is the note as the user saw it. Raises EditConflict when it is another now, EntryNotFound,
    EntryInvalid for a note that is no entry in use, VaultUnavailable; nothing is changed then.
    """
    store, journal = reviewer.store, reviewer.journal
    with store.lock():
        journal.recover()
        before = text_of(store, path)
        if before is None:
            raise EntryNotFound(f"{path} is gone")
        if hash_of(before) != expected_hash:
            raise EditConflict(f"{path} was changed since you saw it: look at it again")
        entry = parse_entry(path, before.encode("utf-8", "surrogateescape"))
        if pending_folder(path) or reason_against(entry):
            raise EntryInvalid(f"{path} is no entry in use")
        if str(body).strip() == entry.body.strip():
            return False
        after = store.render_edit(before, {"fingerprint": fingerprint(statement_of(str(body)))}, body)
        journal.commit(
            [Change(path, before, after)], run=journal.new_run(RUN), actor="review", what=f"edited: {entry.slug}"
        )
    return True
