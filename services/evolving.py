"""Evolve an entry: a new one replaces it, and it is archived with links both ways, as one act."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..pipelines.likeness import statement_of
from ..pipelines.review import archive_name
from ..runtime.errors import EntryExists, EntryInvalid
from ..runtime.layout import INBOX, REVIEW
from ..vault.entry import Entry, fingerprint
from ..vault.evidence import strip_evidence
from ..vault.fields import StoreValue
from ..vault.pending import pending_folder
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import cut
from .decision_property import decision_keys
from .entry_names import require_living
from .journal import Change, Journal

SETTLED = frozenset({"active", "incubating"})
"""Statuses an evolved entry may keep; for any other status, the new text makes it approved."""
SUPERSEDED = ("superseded_by", "superseded_at", "superseded_reason")
"""Properties of an archived entry that only its replacement gives it."""
TITLE_CHARACTERS = 90
_HEADING = re.compile(r"\A# [^\n]*\n+")


def evolve(
    store: VaultStore,
    journal: Journal,
    old: str,
    body: Scrubbed,
    reason: Scrubbed,
) -> str:
    """Supersede the entry at `old` by one with this text, at the same path; return the path of the archived one.

    It is a decision of the user, which `Reviewer.undo_last` takes back.

    Raises EntryNotFound, EntryInvalid (superseded already, or waiting), EntryExists (it says that already),
    EditConflict, VaultUnavailable.
    """
    with journal.locked():
        entry = require_living(store, old)
        if pending_folder(old) in (REVIEW, INBOX):
            raise EntryInvalid(f"{old} waits for your decision: `memory review` shows it, and changes its text")
        if entry.effective_status in SETTLED and says_already(entry, body):
            raise EntryExists(f"{old} says that already: nothing was changed")
        archived = archived_entry(journal, old, entry.text, old, reason)
        fields = _new_fields(store, entry, archived.path, body)
        changes = [archived, Change(old, entry.text, store.render_edit(entry.text, fields, _with_title(entry, body)))]
        journal.commit(changes, run=journal.new_run("evolve"), actor="review", what=f"evolved: {entry.slug}")
    return archived.path


def says_already(entry: Entry, text: str) -> bool:
    """Whether the entry has this text, apart from its evidence, and from its heading if the text has none."""
    held, new = (strip_evidence(one.replace("\r\n", "\n").strip()) for one in (entry.body, text))
    return new in (held, _HEADING.sub("", held))


def free_archive_path(store: VaultStore, path: str) -> str:
    """Return the path under which the entry at `path` would be archived today."""
    day = store.today().strftime("%Y%m%d")
    number = 1
    while store.exists(archive_name(path, day, number)):
        number += 1
    return archive_name(path, day, number)


def archived_entry(journal: Journal, path: str, text: str, new_path: str, reason: Scrubbed) -> Change:
    """Return the change that puts the text of the entry at `path` into the archive, with links to its replacement."""
    fields: dict[str, StoreValue] = {
        "status": "superseded",
        "superseded_by": new_path,
        "superseded_at": journal.stamp(),
        "superseded_reason": reason,
    }
    return Change(free_archive_path(journal.store, path), None, journal.store.render_edit(text, fields))


def _new_fields(store: VaultStore, entry: Entry, archive: str, body: Scrubbed) -> Mapping[str, StoreValue]:
    """Return the fields that differ from the old entry's; kind, group, project, tags and the user's own keys stay."""
    return {
        "status": entry.effective_status if entry.effective_status in SETTLED else "active",
        **dict.fromkeys(decision_keys(entry)),
        "created": store.today(),
        "updated": store.today(),
        "slug": entry.slug,
        "fingerprint": fingerprint(statement_of(str(body))),
        # The old evidence supports what the old entry said.
        **dict.fromkeys(("confidence", "occurrences", "source", "surfaced_in_session", "surfaced_at")),
        **dict.fromkeys(SUPERSEDED),
        "supersedes": archive,
    }


def _with_title(entry: Entry, body: Scrubbed) -> Scrubbed:
    """Return the new text under a new heading if the old one had one: the old title may say the opposite."""
    if not entry.body.startswith("# ") or body.lstrip().startswith("# "):
        return body
    title = cut(statement_of(str(body)), TITLE_CHARACTERS)
    heading = Scrubbed.trusted(f"# {title.rstrip('.')}", reason="the scrubbed text's first line")
    return Scrubbed.joined([heading, body])
