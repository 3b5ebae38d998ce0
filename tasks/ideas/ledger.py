"""The idea ledger: where ideas are kept, how one is captured, promoted, put away and restored.

Whatever touches several files, `Ideas.md` among them, is one act of the journal: killed anywhere, it is done or
not done. `Ideas.md` is written only through the boundary.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from ...pipelines.ideas_file import (
    annotated,
    has_section,
    promoted_line,
    relinked,
    section_text,
    with_section,
    without_section,
)
from ...pipelines.incubation import SURFACE_KIND, TRASH_DAYS, Answer
from ...pipelines.likeness import own_words, statement_of
from ...vault.boundary import Consent
from ...vault.entry import Entry, fingerprint, parse_entry
from ...vault.errors import (
    EditConflict,
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    OutsideUnavailable,
    VaultUnavailable,
)
from ...vault.fields import StoreValue
from ...vault.layout import ARCHIVE, DEFAULT_GROUP, INCUBATOR, PROJECTS, REVIEW, TRASH
from ...vault.scrubbed import Scrubbed
from ...vault.settings import Settings
from ...vault.slug import free_slug, idea_slug, validate_slug
from ...vault.store import VaultStore
from ..boundary import clean_outside, consent_of, is_outside
from ..journal import Act, Actor, Change, FolderMove, Journal, hash_of, text_of

log = logging.getLogger(__name__)

IDEA_NOTE = "_index.md"
INCUBATOR_FOLDER = f"{DEFAULT_GROUP}/{INCUBATOR}"
IDEA_ARCHIVE = f"{INCUBATOR_FOLDER}/{ARCHIVE}"
IDEA_TRASH = f"{IDEA_ARCHIVE}/{TRASH}"
ATTEMPTS_AT_EDITED_FILE = 3
PREVIEW_CHARACTERS = 400
MOST_QUESTIONS = 5
"""Ideas that are put to the user at a time; the others are asked for as these are answered."""
ASK_LATER = "later"
"""`surface:` of an idea that is still to be asked for."""


@dataclass(frozen=True)
class Promoted:
    """Where a promoted idea is now; `annotation`: written, no_ideas_file, no_section or not_writable."""

    slug: str
    path: str
    annotation: str


@dataclass(frozen=True)
class PutAway:
    """What became of an idea: `verdict` kept, archived, deleted or restored; `path`: its note now."""

    slug: str
    verdict: str
    path: str


def idea_folder(slug: str) -> str:
    """Vault-relative folder of an idea in the incubator. Raises EntryInvalid."""
    return f"{INCUBATOR_FOLDER}/{validate_slug(slug)}"


def slug_of(path: str) -> str:
    """The idea's slug in the path of its note: the name of its folder."""
    return path.rsplit("/", 2)[-2]


def research_key(slug: str) -> str:
    """One research job that waits per idea."""
    return f"research.idea:{slug}"


def find_idea(store: VaultStore, slug: str) -> Entry:
    """The note of an idea that is in the incubator now. Raises EntryNotFound, EntryInvalid, VaultUnavailable."""
    path = f"{idea_folder(slug)}/{IDEA_NOTE}"
    try:
        return store.read(path)
    except EntryNotFound as error:
        raise EntryNotFound(f"there is no idea {slug}: `memory idea list` shows what there is") from error


def ideas(store: VaultStore) -> Iterator[Entry]:
    """The notes of all ideas in the incubator, by path; those that cannot be read are passed over."""
    for path in store.walk():
        if is_idea_path(path):
            with suppress(EntryNotFound, EntryInvalid):
                yield store.read(path)


def is_idea_path(path: str) -> bool:
    """Is this the note of an idea in the incubator, not in its archive?"""
    folder, _, name = path.rpartition("/")
    return name == IDEA_NOTE and folder.rpartition("/")[0] == INCUBATOR_FOLDER and not slug_of(path).startswith("_")


def link_of(store: VaultStore, path: str) -> str:
    """The path of a note as Obsidian links it from Ideas.md."""
    return f"{store.vault.name}/{path}"


# Ideas.md


def pitch_of(entry: Entry) -> str:
    """What the idea says, without the context that the miner put behind it."""
    return own_words(statement_of(entry.body))


def is_surfaced(settings: Settings, store: VaultStore, path: str) -> bool:
    """Does Ideas.md list the idea at `path`? Raises VaultUnavailable, OutsideUnavailable, SettingsError."""
    return has_section(text_of(store, str(settings.ideas_path)), link_of(store, path))


def surface_change(settings: Settings, store: VaultStore, path: str, title: str, statement: str) -> Change | None:
    """Ideas.md with the idea's section put in; None: it is there already. Raises OutsideUnavailable."""
    target = str(settings.ideas_path)
    before = text_of(store, target)
    if has_section(before, link_of(store, path)):
        return None
    today = store.today()
    text = with_section(before, section_text(today, title, statement, link_of(store, path)), today)
    return Change(target, before, Scrubbed.trusted(text, reason="the user's own file and a scrubbed idea"))


def clean_beside_list(settings: Settings, store: VaultStore) -> int:
    """Delete what killed writers of Ideas.md left beside it; how many files."""
    return clean_outside(store, str(settings.ideas_path))


def question_path(slug: str) -> str:
    """The note that asks whether the idea may be put into Ideas.md."""
    return f"{DEFAULT_GROUP}/{REVIEW}/surface-{slug}.md"


def question_change(settings: Settings, store: VaultStore, path: str, title: str, statement: str) -> Change | None:
    """The note that asks; None: it asks already."""
    slug = slug_of(path)
    if store.exists(question_path(slug)):
        return None
    preview = section_text(store.today(), title, statement, link_of(store, path))
    quoted = "\n".join(f"> {line}" for line in preview[:PREVIEW_CHARACTERS].splitlines())
    body = (
        f"Put this idea into {settings.ideas_path.name}? {' '.join(statement.split())}\n\n"
        f"Approved, this is added to {settings.ideas_path.name}, your own list outside {store.vault.name}/:\n\n"
        f"{quoted}\n\n"
        f"Rejected, the idea stays in [[{link_of(store, path).removesuffix('.md')}]] and you are not asked again."
    )
    text = store.compose(
        question_path(slug),
        {"kind": SURFACE_KIND, "status": "pending", "group": DEFAULT_GROUP, "idea": slug},
        Scrubbed.trusted(f"Surface: {title}", reason="the scrubbed idea's title"),
        Scrubbed.trusted(body, reason="our own words and the scrubbed idea"),
    )
    return Change(question_path(slug), None, text)


def _may_ask(store: VaultStore) -> bool:
    return sum(1 for _ in (store.vault / DEFAULT_GROUP / REVIEW).glob("surface-*.md")) < MOST_QUESTIONS


def _asked_or_later(settings: Settings, store: VaultStore, note: Change, title: str, statement: str) -> list[Change]:
    """The note and the question, or the note that is to be asked for once others are answered."""
    if not _may_ask(store):
        return [Change(note.path, note.before, store.edited(note.after or "", {"surface": ASK_LATER}))]
    question = question_change(settings, store, note.path, title, statement)
    return [note] if question is None else [note, question]


def ask_next(settings: Settings, journal: Journal) -> int:
    """Put ideas to the user that had to wait, the oldest first, as many as may be asked at a time; how many.

    Raises VaultUnavailable.
    """
    store, asked = journal.store, 0
    if settings.memory.review_mode != "interactive":
        return 0
    with store.lock():
        journal.recover()
        waiting = [entry for entry in ideas(store) if entry.extra.get("surface") == ASK_LATER]
        for entry in sorted(waiting, key=lambda one: (one.surfaced_at or "", one.path)):
            if not _may_ask(store):
                break
            with suppress(EditConflict, EntryExists, EntryInvalid):
                before = text_of(store, entry.path) or ""
                # `updated` stays: nobody has come back to the idea.
                note = Change(entry.path, before, store.edited(before, {"surface": None, "updated": entry.updated}))
                question = question_change(settings, store, entry.path, entry.title, pitch_of(entry))
                changes = [note] if question is None else [note, question]
                journal.commit(changes, run=journal.new_run("idea"), actor="idea", what=f"asked: {slug_of(entry.path)}")
                asked += 1
    return asked


def commit_idea(
    settings: Settings,
    journal: Journal,
    note: Change,
    *,
    run: str,
    actor: Actor,
    what: str,
    session: str = "",
    requested: bool = False,
) -> list[Change]:
    """Write an idea's note and, as one act, its section in Ideas.md or the question whether it may be put there.

    A question that waits is answered by the section.
    An Ideas.md that cannot be read or written does not keep the idea from being captured. Raises as
    `Journal.commit`.
    """
    store, consent = journal.store, consent_of(settings, requested=requested)
    entry = parse_entry(note.path, (note.after or "").encode("utf-8", "surrogateescape"))
    title, statement = entry.title, pitch_of(entry)
    changes = [note]
    for attempt in range(ATTEMPTS_AT_EDITED_FILE):
        if text_of(store, note.path) != note.before:
            break  # the note itself is in the way: let the journal say so
        try:
            changes = [note]
            if consent is not None:
                section = surface_change(settings, store, note.path, title, statement)
                changes = [note] if section is None else [note, section]
                if is_idea_path(note.path):
                    changes += _answered_question(store, slug_of(note.path))
            elif settings.memory.review_mode == "interactive":
                changes = _asked_or_later(settings, store, note, title, statement)
            journal.commit(changes, run=run, actor=actor, what=what, session=session, consent=consent)
            return changes
        except (EditConflict, EntryExists):
            if attempt == ATTEMPTS_AT_EDITED_FILE - 1:
                log.warning("%s is being written by another program: not surfaced", settings.ideas_path)
        except MemoryVaultError as error:
            if requested:
                raise
            log.warning("an idea was not surfaced: %s", error)
            break
    changes = [note]
    journal.commit(changes, run=run, actor=actor, what=what, session=session)
    return changes


def surface(settings: Settings, journal: Journal, slug: str, *, run: str, confirmed: bool = False) -> str:
    """Put an idea that is in the incubator into Ideas.md, on the user's word; its note's path.

    The question is answered with it. Raises EntryNotFound, EditConflict, BoundaryRefused, VaultUnavailable.
    """
    store = journal.store
    with store.lock():
        journal.recover()
        entry = find_idea(store, slug)
        change = surface_change(settings, store, entry.path, entry.title, pitch_of(entry))
        changes = [change] if change is not None else []
        if entry.extra.get("surface") is not None:
            before = text_of(store, entry.path) or ""
            changes.append(Change(entry.path, before, store.edited(before, {"surface": None})))
        changes += _answered_question(store, slug)
        if changes:
            journal.commit(
                changes,
                run=run,
                actor="review" if confirmed else "idea",
                what=f"surfaced: {slug}",
                consent=consent_of(settings, requested=not confirmed, confirmed=confirmed),
            )
    return entry.path


def decline(journal: Journal, slug: str, question: str, *, run: str) -> str:
    """The user does not want the idea in Ideas.md: remembered in its note. Its path."""
    store = journal.store
    path = f"{idea_folder(slug)}/{IDEA_NOTE}"
    changes = [Change(question, text_of(store, question), None)]
    before = text_of(store, path)
    if before is not None:
        changes.append(Change(path, before, store.edited(before, {"surface": "declined"})))
    journal.commit(changes, run=run, actor="review", what=f"not surfaced: {slug}")
    return path if before is not None else question


def _answered_question(store: VaultStore, slug: str) -> list[Change]:
    text = text_of(store, question_path(slug))
    return [] if text is None else [Change(question_path(slug), text, None)]


def taken_back(store: VaultStore, act: Act, now: str | None) -> str | None:
    """Ideas.md as it is now, without what the act put in; None when that cannot be told any more."""
    if act.moves:
        return _follow(store, now, [(move.to, move.path) for move in act.moves])
    slugs = (slug_of(change.path) for change in act.changes if is_idea_path(change.path))
    questions = (
        Path(change.path).stem.removeprefix("surface-")
        for change in act.changes
        if not is_outside(change.path) and Path(change.path).name.startswith("surface-")
    )
    text, found = now, False
    for slug in {*slugs, *questions}:
        rest = without_section(text, link_of(store, f"{idea_folder(slug)}/{IDEA_NOTE}")) if text else None
        if rest is not None:
            text, found = rest, True
    return text if found else None


# Capture on request


def new_idea_path(store: VaultStore, title: str) -> str:
    """Where a new idea of this title belongs: `<slug>`, `<slug>-2`, … , the first that is free."""
    slug = free_slug(idea_slug(title), lambda taken: store.is_taken(f"{INCUBATOR_FOLDER}/{taken}"))
    return f"{INCUBATOR_FOLDER}/{slug}/{IDEA_NOTE}"


# Promotion, archive, trash


def promote(settings: Settings, journal: Journal, slug: str, *, name: str | None = None) -> Promoted:
    """Make a project of an idea: its folder moves to `personal-projects/<name>/`, Ideas.md says so.

    Raises EntryNotFound, EntryExists when there is such a project, EditConflict, VaultUnavailable.
    """
    store = journal.store
    project = validate_slug(name or slug)
    target = f"{PROJECTS}/{project}"
    annotate = True
    for attempt in range(ATTEMPTS_AT_EDITED_FILE):
        try:
            with store.lock():
                journal.recover()
                entry = find_idea(store, slug)
                if store.is_taken(target):
                    raise EntryExists(f"there is already a project {target}: choose another name with --as")
                return _promote(settings, journal, entry, project, target, annotate=annotate)
        except OutsideUnavailable as error:
            log.warning("Ideas.md does not say so: %s", error)
            annotate = False
        except EditConflict:
            if attempt == ATTEMPTS_AT_EDITED_FILE - 1:
                raise
    raise AssertionError("unreachable")


def _promote(
    settings: Settings, journal: Journal, entry: Entry, project: str, target: str, *, annotate: bool
) -> Promoted:
    store, slug, today = journal.store, slug_of(entry.path), journal.store.today()
    path = f"{target}/{IDEA_NOTE}"
    before = text_of(store, entry.path) or ""
    fields: dict[str, StoreValue] = {
        "status": "active",
        "promoted": today,
        "group": target,
        "slug": project,
        "project": None,
        "surface": None,
    }
    changes = [Change(path, before, store.edited(before, fields))]
    ideas_file = str(settings.ideas_path)
    listed = text_of(store, ideas_file) if annotate else None
    annotation = "not_writable" if not annotate else "no_ideas_file" if listed is None else "no_section"
    if listed is not None:
        line = promoted_line(today, link_of(store, target))
        text = annotated(listed, link_of(store, entry.path), line, link_of(store, path))
        if text is not None:
            annotation = "written"
            reason = "the user's own file and our own words"
            changes.append(Change(ideas_file, listed, Scrubbed.trusted(text, reason=reason)))
    changes += _answered_question(store, slug)
    journal.commit(
        changes,
        run=journal.new_run("promote"),
        actor="idea",
        what=f"promoted: {slug}",
        moves=[FolderMove(entry.path.rpartition("/")[0], target)],
        consent=consent_of(settings, requested=True),
    )
    return Promoted(slug, path, annotation)


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
) -> PutAway:
    """Keep, archive or delete an idea, on the user's word; `also` changes with it, as one act.

    `expected_hash` is its note as the user saw it: raises EditConflict when it is another now.

    Its link in `ideas_file` follows it: Obsidian would make an empty idea of a link that leads nowhere. Raises
    EntryNotFound, EditConflict, VaultUnavailable.
    """
    store = journal.store
    with store.lock():
        journal.recover()
        entry = find_idea(store, slug)
        before, today = text_of(store, entry.path) or "", store.today()
        if expected_hash is not None and hash_of(before) != expected_hash:
            raise EditConflict(f"{entry.path} was changed since you saw it: look at it again")
        moves: list[FolderMove] = []
        changes: list[Change] = []
        path = entry.path
        match answer:
            case Answer.KEEP:
                verdict = "kept"
                changes.append(Change(path, before, store.edited(before, {"kept": today})))
            case Answer.ARCHIVE:
                verdict = "archived"
                path = _moved(store, slug, IDEA_ARCHIVE, moves)
                changes.append(Change(path, before, store.edited(before, {"status": "archived", "archived": today})))
            case Answer.DELETE:
                verdict = "deleted"
                path = _moved(store, slug, IDEA_TRASH, moves)
                fields: dict[str, StoreValue] = {"status": "dismissed", "deleted": today}
                changes.append(Change(path, before, store.edited(before, fields)))
                changes.append(_tombstone(store, entry))
        if moves:
            changes += _answered_question(store, slug)
        what = f"{verdict}: {slug}"
        _commit_moved(journal, [*changes, *also], moves, ideas_file, run=run, actor=actor, what=what)
    return PutAway(slug, verdict, path)


def _commit_moved(
    journal: Journal,
    changes: Sequence[Change],
    moves: Sequence[FolderMove],
    ideas_file: Path | None,
    *,
    run: str,
    actor: Actor,
    what: str,
) -> None:
    """Commit it with the links in Ideas.md, or without them when that cannot be read or written."""
    consent = Consent.REQUESTED if actor == "idea" else Consent.CONFIRMED
    try:
        listed = text_of(journal.store, str(ideas_file)) if ideas_file is not None else None
        links = _follow(journal.store, listed, [(move.path, move.to) for move in moves])
        if ideas_file is not None and links is not None:
            text = Scrubbed.trusted(links, reason="the user's own file and our own words")
            also = [Change(str(ideas_file), listed, text)]
            journal.commit([*changes, *also], run=run, actor=actor, what=what, moves=moves, consent=consent)
            return
    except OutsideUnavailable as error:
        log.warning("a link to an idea leads nowhere now: %s", error)
    journal.commit(changes, run=run, actor=actor, what=what, moves=moves)


def _follow(store: VaultStore, text: str | None, folders: Sequence[tuple[str, str]]) -> str | None:
    """Ideas.md with links that follow ideas from folder to folder; None: there is none to change."""
    changed = None
    for old, new in folders:
        links = (link_of(store, f"{folder}/{IDEA_NOTE}") for folder in (old, new))
        found = relinked(text, *links) if text is not None else None
        if found is not None:
            text = changed = found
    return changed


def _moved(store: VaultStore, slug: str, folder: str, moves: list[FolderMove]) -> str:
    name = free_slug(slug, lambda taken: store.is_taken(f"{folder}/{taken}"))
    moves.append(FolderMove(idea_folder(slug), f"{folder}/{name}"))
    return f"{folder}/{name}/{IDEA_NOTE}"


def _tombstone(store: VaultStore, entry: Entry) -> Change:
    """What stays of a deleted idea, none of its words: what was said once must not propose it again."""
    slug = slug_of(entry.path)
    folder = f"{DEFAULT_GROUP}/{ARCHIVE}"
    path = f"{folder}/{free_slug(f'idea-{slug}', lambda taken: store.exists(f'{folder}/{taken}.md'))}.md"
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


def restore(journal: Journal, slug: str, *, ideas_file: Path | None = None) -> PutAway:
    """Bring an idea back from the trash or the archive, and its link in `ideas_file` with it.

    Raises EntryNotFound, EntryExists, VaultUnavailable.
    """
    store = journal.store
    target = idea_folder(slug)
    with store.lock():
        journal.recover()
        folder = next((f for f in (f"{IDEA_TRASH}/{slug}", f"{IDEA_ARCHIVE}/{slug}") if store.is_taken(f)), None)
        if folder is None:
            raise EntryNotFound(f"no idea {slug} lies in the trash or the archive: `memory idea list --all` shows them")
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
            changes.append(Change(path, before, store.edited(before, fields)))
            deleted = parse_entry(path, before.encode("utf-8", "surrogateescape"))
            changes += _tombstones(store, deleted.fingerprint or fingerprint(statement_of(deleted.body)))
        moves, run = [FolderMove(folder, target)], journal.new_run("idea")
        _commit_moved(journal, changes, moves, ideas_file, run=run, actor="idea", what=f"restored: {slug}")
    return PutAway(slug, "restored", path)


def _tombstones(store: VaultStore, known_by: str) -> Iterator[Change]:
    for entry in store.readable([path for path in store.walk() if path.startswith(f"{DEFAULT_GROUP}/{ARCHIVE}/idea-")]):
        if entry.fingerprint == known_by and entry.status == "dismissed" and "idea" in entry.extra:
            yield Change(entry.path, text_of(store, entry.path), None)


def put_away_ideas(store: VaultStore) -> list[tuple[str, Entry]]:
    """(archived or deleted, note) of ideas that can be restored."""
    found = []
    for verdict, folder in (("archived", IDEA_ARCHIVE), ("deleted", IDEA_TRASH)):
        for slug in _folders(store, folder):
            with suppress(EntryNotFound, EntryInvalid):
                found.append((verdict, store.read(f"{folder}/{slug}/{IDEA_NOTE}")))
    return found


def purge_trash(store: VaultStore) -> int:
    """Delete for good what has lain in the trash for 30 days; how many ideas. Raises VaultUnavailable.

    What does not say since when, as a folder that was dragged there, is dated today. An interrupted change has to be
    ended before (`Journal.recover`).
    """
    limit = store.today() - timedelta(days=TRASH_DAYS)
    purged = 0
    for slug in _folders(store, IDEA_TRASH):
        folder = f"{IDEA_TRASH}/{slug}"
        with suppress(EntryNotFound, EntryInvalid, EditConflict):  # without a note that can be dated it stays
            entry = store.read(f"{folder}/{IDEA_NOTE}")
            deleted = _deleted_on(entry)
            if deleted is None:
                store.update(entry.path, entry.content_hash, fields={"deleted": store.today()})
            elif deleted <= limit:
                store.purge(folder)
                purged += 1
    return purged


def _deleted_on(entry: Entry) -> date | None:
    try:
        return date.fromisoformat(str(entry.extra.get("deleted"))[:10])
    except ValueError:
        return None


def _folders(store: VaultStore, folder: str) -> list[str]:
    store.require_vault()
    try:
        with os.scandir(store.vault / folder) as children:
            return sorted(c.name for c in children if c.name[0] not in "._" and c.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise VaultUnavailable(f"{folder} cannot be read: {error.strerror}") from error


def idea_as_json(entry: Entry, surfaced: bool | None) -> Mapping[str, object]:
    """An idea as `--json` prints it."""
    return {
        "slug": slug_of(entry.path),
        "path": entry.path,
        "title": entry.title,
        "statement": statement_of(entry.body),
        "status": entry.effective_status,
        "surfaced_at": entry.surfaced_at,
        "session": entry.surfaced_in_session,
        "occurrences": entry.occurrences,
        "in_ideas_file": surfaced,
        "research": entry.extra.get("research"),
    }
