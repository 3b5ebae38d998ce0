"""Evolve an entry: a new one replaces it, and it is archived with links both ways, as one act."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from ..pipelines.incubation import GC_KIND, SURFACE_KIND
from ..pipelines.likeness import statement_of
from ..pipelines.review import Accepted, Approve, archive_name, link_target, settle
from ..runtime.errors import EntryExists, EntryInvalid, EntryNotFound, UsageError
from ..runtime.layout import INBOX, REVIEW
from ..vault.entry import Entry, fingerprint
from ..vault.evidence import strip_evidence
from ..vault.fields import StoreValue
from ..vault.pending import IDEA_NOTE, pending_folder
from ..vault.scrubbed import Scrubbed
from ..vault.store import VaultStore
from ..vault.wording import cut
from .decision_property import decision_keys
from .entry_names import require_living, resolve_entry
from .journal import Change, Journal, rewritten

SETTLED = frozenset({"active", "incubating"})
"""Statuses an evolved entry may keep; for any other status, the new text makes it approved."""
TITLE_CHARACTERS = 90
_HEADING = re.compile(r"\A# [^\n]*\n+")


@dataclass(frozen=True)
class Evolved:
    """Paths of the new and of the replaced entry."""

    path: str
    archive: str


def evolve(
    store: VaultStore,
    journal: Journal,
    old: str,
    body: Scrubbed,
    reason: Scrubbed,
) -> Evolved:
    """Supersede the entry at `old` by one with this text, at the same path.

    A note that waits in the review or the inbox is placed with its new text in the same act. It is a decision of the
    user, which `Reviewer.undo_last` takes back.

    Raises EntryNotFound, EntryInvalid (superseded already), EntryExists (also if it says that already), UsageError,
    EditConflict, VaultUnavailable.
    """
    with journal.locked():
        entry = require_living(store, old)
        path, status = old, "incubating" if entry.effective_status == "incubating" else "active"
        if pending_folder(old) in (REVIEW, INBOX):
            path, status = _placed(store, entry)
        if path != old and store.exists(path):
            raise EntryExists(f"there is already an entry {path}: rename one of the two")
        if path == old and entry.effective_status in SETTLED and says_already(entry, body):
            raise EntryExists(f"{old} says that already: nothing was changed")
        archive = free_archive_path(store, old)
        text = store.render_edit(
            entry.text, _new_fields(store, entry, path, status, archive, body), _with_title(entry, body)
        )
        archived = archived_text(store, journal, entry.text, path, reason)
        changes = [Change(archive, None, archived), *rewritten(entry, text, path)]
        journal.commit(changes, run=journal.new_run("evolve"), actor="review", what=f"evolved: {entry.slug}")
    return Evolved(path, archive)


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


def archived_text(store: VaultStore, journal: Journal, before: str, new_path: str, reason: Scrubbed) -> Scrubbed:
    """Return the old entry's text with the links to its replacement."""
    return store.render_edit(
        before,
        {
            "status": "superseded",
            "superseded_by": new_path,
            "superseded_at": journal.stamp(),
            "superseded_reason": reason,
        },
    )


def _placed(store: VaultStore, entry: Entry) -> tuple[str, str]:
    """Return path and status of a note that waits for a decision, as if it was approved.

    Raises EntryInvalid, UsageError.
    """
    if entry.kind in (SURFACE_KIND, GC_KIND):
        raise EntryInvalid(f"{entry.path} can't be evolved: it is a question; answer it with `memory review`")
    if entry.supersedes is not None:
        with suppress(EntryNotFound, EntryInvalid):
            other = resolve_entry(store, link_target(entry.supersedes))
            raise UsageError(
                f"{entry.path} would replace {other}: decide on it with `memory review`, or evolve that one"
            )
    accepted = settle(entry, Approve())
    assert isinstance(accepted, Accepted)
    return accepted.path, accepted.status


def _new_fields(
    store: VaultStore, entry: Entry, path: str, status: str, archive: str, body: Scrubbed
) -> Mapping[str, StoreValue]:
    """Return the fields that differ from the old entry's; kind, group, project, tags and the user's own keys stay."""
    name = path.rsplit("/", 2)[-2] if path.endswith(f"/{IDEA_NOTE}") else path.rsplit("/", 1)[-1].removesuffix(".md")
    return {
        "status": status,
        **dict.fromkeys(decision_keys(entry)),
        "created": store.today(),
        "updated": store.today(),
        "slug": name if path != entry.path else entry.slug,
        "fingerprint": fingerprint(statement_of(str(body))),
        # The old evidence supports what the old entry said.
        "confidence": None,
        "occurrences": None,
        "source": None,
        "surfaced_in_session": None,
        "surfaced_at": None,
        "supersedes": archive,
        "superseded_by": None,
        "superseded_at": None,
        "superseded_reason": None,
    }


def _with_title(entry: Entry, body: Scrubbed) -> Scrubbed:
    """Return the new text under a new heading if the old one had one: the old title may say the opposite."""
    if not entry.body.startswith("# ") or body.lstrip().startswith("# "):
        return body
    title = cut(statement_of(str(body)), TITLE_CHARACTERS)
    heading = Scrubbed.trusted(f"# {title.rstrip('.')}", reason="the scrubbed text's first line")
    return Scrubbed.joined([heading, body])
