"""Put ideas away, restore and promote them: the archive, the trash, and tombstones of deleted ideas.

Each operation is one act of the journal, as in `ledger`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path

from ...pipelines.ideas_file import promoted_line
from ...pipelines.incubation import TRASH_DAYS, Answer
from ...pipelines.likeness import statement_of
from ...runtime.days import parse_local_day
from ...runtime.errors import (
    EditConflict,
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    OutsideUnavailable,
    VaultUnavailable,
)
from ...runtime.layout import ARCHIVE, DEFAULT_GROUP, PROJECTS
from ...runtime.slug import free_slug, is_slug, slugify, validate_name
from ...vault.boundary import Consent
from ...vault.entry import Entry, fingerprint, parse_text
from ...vault.fields import StoreValue
from ...vault.pending import IDEA_NOTE
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..decision_property import DecisionOutcome
from ..journal import Actor, Change, FolderMove, Journal, text_of
from ..retrying import read_seen, retry_edit
from .ledger import (
    IDEA_ARCHIVE,
    IDEA_TRASH,
    answered_question,
    became_of,
    find_idea,
    follow_link,
    idea_folder,
    link_of,
    slug_of,
)

log = logging.getLogger(__name__)


def put_away(
    journal: Journal,
    slug: str,
    answer: Answer,
    *,
    run: str,
    actor: Actor,
    also: Sequence[Change] = (),
    ideas_file: Path | None = None,
    expected_hash: str | None = None,
) -> DecisionOutcome:
    """Keep, archive or delete an idea on the user's word; `also` are further changes of the same act.

    `expected_hash` is the hash of the note as the user saw it; raises EditConflict if it has changed.

    The link to it in `ideas_file` is updated, because Obsidian would create an empty note for a broken link. Raises
    EntryNotFound, EditConflict, VaultUnavailable.
    """
    store = journal.store
    with journal.locked():
        entry = read_seen(store, find_idea(store, slug).path, expected_hash)
        verdict, folder, fields = _put_away_as(answer, store.today())
        others, what = [*also], f"{verdict}: {slug}"
        if answer is Answer.DELETE:
            others.append(_tombstone(store, entry))
        if not folder:
            note = Change(entry.path, entry.text, store.render_edit(entry.text, fields))
            journal.commit([note, *others], run=run, actor=actor, what=what)
            return DecisionOutcome(entry.path, verdict, entry.path)
        name = free_slug(slug, lambda taken: store.is_taken(f"{folder}/{taken}"))
        move = FolderMove(idea_folder(slug), f"{folder}/{name}")
        path = f"{move.to}/{IDEA_NOTE}"
        changes = [Change(path, entry.text, store.render_edit(entry.text, fields)), *others]
        changes += answered_question(store, slug)
        _commit_moved(journal, changes, move, ideas_file, run=run, actor=actor, what=what)
    return DecisionOutcome(entry.path, verdict, path)


def _put_away_as(answer: Answer, today: date) -> tuple[str, str, dict[str, StoreValue]]:
    """Return the act's description, the new folder ('' for none), and the note's new fields."""
    match answer:
        case Answer.KEEP:
            return "kept", "", {"kept": today}
        case Answer.ARCHIVE:
            return "archived", IDEA_ARCHIVE, {"status": "archived", "archived": today}
        case Answer.DELETE:
            return "deleted", IDEA_TRASH, {"status": "dismissed", "deleted": today}


def _commit_moved(
    journal: Journal,
    changes: Sequence[Change],
    move: FolderMove,
    ideas_file: Path | None,
    *,
    run: str,
    actor: Actor,
    what: str,
    line: str = "",
) -> bool:
    """Commit with the updated link in Ideas.md and `line` below it, or without them if it has no section of the idea or
    cannot be read or written; return whether it was written."""
    consent = Consent.REQUESTED if actor == "idea" else Consent.CONFIRMED
    try:
        listed = text_of(journal.store, str(ideas_file)) if ideas_file is not None else None
        followed = follow_link(journal.store, listed, move, line)
        if followed is not None:
            text = Scrubbed.trusted(followed, reason="the user's own file and our own words")
            also = [*changes[:1], Change(str(ideas_file), listed, text), *changes[1:]]
            journal.commit(also, run=run, actor=actor, what=what, moves=[move], consent=consent)
            return True
    except OutsideUnavailable as error:
        log.warning("the link to an idea in Ideas.md stays as it was: %s", error)
    journal.commit(changes, run=run, actor=actor, what=what, moves=[move])
    return False


def _tombstone(store: VaultStore, entry: Entry) -> Change:
    """Return what remains of a deleted idea, without its words: the same evidence must not propose it again."""
    slug = slug_of(entry.path)
    folder = f"{DEFAULT_GROUP}/{ARCHIVE}"
    path = f"{folder}/{free_slug(f'idea-{slugify(slug)}', lambda taken: store.exists(f'{folder}/{taken}.md'))}.md"
    text = store.compose(
        path,
        {
            "kind": "idea",
            "status": "dismissed",
            "fingerprint": entry.fingerprint or fingerprint(statement_of(entry.body)),
            "source": list(entry.sources) or None,
            "idea": slug,
            "deleted": store.today(),
        },
        None,
        Scrubbed.trusted(
            "You deleted this idea. This note keeps it from being proposed again; delete the note to allow that.",
            reason="our own words",
        ),
    )
    return Change(path, None, text)


def restore(journal: Journal, slug: str, *, ideas_file: Path | None = None) -> DecisionOutcome:
    """Restore an idea from the trash or the archive, with its link in `ideas_file`.

    Raises EntryNotFound, EntryExists, VaultUnavailable.
    """
    store = journal.store
    target = idea_folder(slug)
    with journal.locked():
        folder = next((f for f in (f"{IDEA_TRASH}/{slug}", f"{IDEA_ARCHIVE}/{slug}") if store.is_taken(f)), None)
        if folder is None:
            unknown = f"no idea {slug} lies in the trash or the archive: `memory idea list --all` shows them"
            raise EntryNotFound(became_of(store, slug) or unknown)
        if store.is_taken(target):
            raise EntryExists(f"there is an idea {slug} in the incubator: promote or archive that one first")
        path = f"{target}/{IDEA_NOTE}"
        before = text_of(store, f"{folder}/{IDEA_NOTE}")
        changes = []
        if before is not None:
            fields: dict[str, StoreValue] = {
                "status": "incubating",
                "archived": None,
                "deleted": None,
                "kept": store.today(),
            }
            changes.append(Change(path, before, store.render_edit(before, fields)))
            deleted = parse_text(path, before)
            changes += _tombstones(store, deleted.fingerprint or fingerprint(statement_of(deleted.body)))
        move, run = FolderMove(folder, target), journal.new_run("idea")
        _commit_moved(journal, changes, move, ideas_file, run=run, actor="idea", what=f"restored: {slug}")
    return DecisionOutcome(f"{folder}/{IDEA_NOTE}", "restored", path)


def promote(journal: Journal, slug: str, *, name: str | None = None, ideas_file: Path | None = None) -> DecisionOutcome:
    """Make an idea a project: move its folder to `personal-projects/<name>/` and note it in `ideas_file`.

    Raises EntryNotFound, EntryExists if there is such a project, EditConflict, VaultUnavailable.
    """
    store, today = journal.store, journal.store.today()
    project = validate_name("slug", name or (slug if is_slug(slug) else slugify(slug)))
    target = f"{PROJECTS}/{project}"
    path = f"{target}/{IDEA_NOTE}"
    fields: dict[str, StoreValue] = {
        "status": "active",
        "promoted": today,
        "idea": slug if slug != project else None,
        "group": target,
        "slug": project,
        "project": None,
        "surface": None,
    }

    def attempt() -> DecisionOutcome:
        with journal.locked():
            entry = find_idea(store, slug)
            if store.is_taken(target):
                raise EntryExists(f"there is already a project {target}: choose another name with --as")
            changes = [Change(path, entry.text, store.render_edit(entry.text, fields)), *answered_question(store, slug)]
            move, run = FolderMove(idea_folder(slug), target), journal.new_run("promote")
            what, line = f"promoted: {slug}", promoted_line(today, link_of(store, target))
            listed = _commit_moved(journal, changes, move, ideas_file, run=run, actor="idea", what=what, line=line)
        return DecisionOutcome(entry.path, "promoted", path, listed_in=str(ideas_file) if listed else None)

    return retry_edit(attempt)


def _tombstones(store: VaultStore, known_by: str) -> Iterator[Change]:
    for entry in store.readable([path for path in store.walk() if path.startswith(f"{DEFAULT_GROUP}/{ARCHIVE}/idea-")]):
        if entry.fingerprint == known_by and entry.status == "dismissed" and "idea" in entry.extra:
            yield Change(entry.path, entry.text, None)


def put_away_ideas(store: VaultStore) -> list[tuple[str, Entry]]:
    """Return (archived or deleted, note) of the ideas that can be restored."""
    found = []
    for verdict, folder in (("archived", IDEA_ARCHIVE), ("deleted", IDEA_TRASH)):
        for slug in _folders(store, folder):
            with suppress(EntryNotFound, EntryInvalid):
                found.append((verdict, store.read(f"{folder}/{slug}/{IDEA_NOTE}")))
    return found


def purge_trash(store: VaultStore, today: date | None = None) -> int:
    """Delete ideas permanently that have been in the trash for 30 days at `today`; return how many.

    Ideas without a date, such as a folder that was dragged there, are dated today. Recover an interrupted act first
    (`Journal.recover`). Raises VaultUnavailable.
    """
    limit = (today or store.today()) - timedelta(days=TRASH_DAYS)
    purged = 0
    for slug in _folders(store, IDEA_TRASH):
        folder = f"{IDEA_TRASH}/{slug}"
        with suppress(EntryNotFound, EntryInvalid, EditConflict):  # A note that cannot be dated stays.
            entry = store.read(f"{folder}/{IDEA_NOTE}")
            deleted = parse_local_day(str(entry.extra.get("deleted")))
            if deleted is None:
                store.update(entry.path, entry.content_hash, fields={"deleted": store.today()})
            elif deleted <= limit:
                store.purge(folder)
                purged += 1
    return purged


def _folders(store: VaultStore, folder: str) -> list[str]:
    store.require_vault()
    try:
        with os.scandir(store.vault / folder) as children:
            return sorted(c.name for c in children if c.name[0] not in "._" and c.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise VaultUnavailable(f"{folder} cannot be read: {error.strerror}") from error
