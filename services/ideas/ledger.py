"""The idea ledger: where ideas are kept, how one is captured and promoted (put away and restored: `archive`).

Whatever touches several files, `Ideas.md` among them, is one act of the journal: killed anywhere, it is done or
not done. `Ideas.md` is written only through the boundary.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from shlex import quote

from ...pipelines.ideas_file import (
    annotated,
    deleted_line,
    has_section,
    heading_of,
    linked_again,
    promoted_line,
    relinked,
    said_next,
    section_text,
    summary_beside,
    unlinked,
    with_section,
    without_section,
)
from ...pipelines.incubation import SURFACE_KIND
from ...pipelines.likeness import content_words, own_words, statement_of
from ...runtime.days import parse_local_day
from ...runtime.errors import (
    EditConflict,
    EntryExists,
    EntryInvalid,
    EntryNotFound,
    MemoryVaultError,
    OutsideUnavailable,
    PathRefused,
)
from ...runtime.layout import ARCHIVE, DEFAULT_GROUP, PROJECTS, REVIEW, TRASH
from ...runtime.settings import Settings
from ...runtime.slug import free_slug, idea_slug, is_slug, slugify, validate_slug, validate_user_name
from ...vault.entry import Entry, fingerprint, parse_text
from ...vault.fields import StoreValue
from ...vault.pending import IDEA_NOTE, INCUBATOR_FOLDER, is_idea_path, question_path
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..boundary import clean_outside, consent_of
from ..journal import Act, Actor, Change, FolderMove, Journal, text_of
from ..retrying import retry_edit

log = logging.getLogger(__name__)

IDEA_ARCHIVE = f"{INCUBATOR_FOLDER}/{ARCHIVE}"
IDEA_TRASH = f"{IDEA_ARCHIVE}/{TRASH}"
MOST_QUESTIONS = 3
"""Ideas that are put to the user at a time; the others are asked for as these are answered."""
ASK_LATER = "later"
"""`surface:` of an idea that is still to be asked for."""
BY_COMMAND = "cli"
"""Host of an idea that the user wrote down himself, by `memory idea`."""
DECLINED = "declined"
"""`surface:` of an idea that the user does not want in Ideas.md."""
ASKING_RUN = "ask-idea"
"""How the runs of the journal begin in which an idea that had to wait was put to the user."""
SURFACED = "surfaced: "
"""How it begins to tell of one that put an idea into Ideas.md, on the user's word."""


@dataclass(frozen=True)
class Promotion:
    """Where a promoted idea is now; `annotation`: written, no_ideas_file, no_section or not_writable."""

    slug: str
    path: str
    annotation: str


def idea_folder(slug: str) -> str:
    """Vault-relative folder of an idea in the incubator; the user may have given it any name. Raises EntryInvalid."""
    return f"{INCUBATOR_FOLDER}/{validate_user_name(slug)}"


def slug_of(path: str) -> str:
    """The idea's slug in the path of its note: the name of its folder."""
    return path.rsplit("/", 2)[-2]


def research_key(slug: str) -> str:
    """One research job that waits per idea."""
    return f"research.idea:{slug}"


def has_own_title(title: str, summary: str) -> bool:
    """Whether the title says more than the summary; that of a mined idea is made of its statement."""
    return not content_words(title) <= content_words(summary)


def is_titled_otherwise(idea: Entry, title: str, summary: str) -> bool:
    """Whether an idea with this title is another one than `idea`, whose summary is alike."""
    if not (has_own_title(idea.title, statement_of(idea.body)) and has_own_title(title, summary)):
        return False
    return content_words(idea.title) != content_words(title) and fingerprint(idea.title) != fingerprint(title)


def find_idea(store: VaultStore, slug: str) -> Entry:
    """The note of an idea that is in the incubator now.

    Raises EntryNotFound, which says what became of it where that is known, EntryInvalid, VaultUnavailable.
    """
    path = f"{idea_folder(slug)}/{IDEA_NOTE}"
    try:
        return store.read(path)
    except EntryNotFound as error:
        unknown = f"there is no idea {slug}: `memory idea list` shows what there is"
        raise EntryNotFound(became_of(store, slug) or unknown) from error


def became_of(store: VaultStore, slug: str) -> str | None:
    """What was done with an idea that has left the incubator, in words; None where nothing says so."""
    for folder, verdict, field in ((IDEA_ARCHIVE, "archived", "archived"), (IDEA_TRASH, "deleted", "deleted")):
        with suppress(EntryNotFound, EntryInvalid):
            when = store.read(f"{folder}/{slug}/{IDEA_NOTE}").extra.get(field)
            on = f" on {when}" if when else ""
            return f"the idea {slug} was {verdict}{on}: `memory idea restore {quote(slug)}` brings it back"
    for project in sorted((store.vault / PROJECTS).glob(f"*/{IDEA_NOTE}"), key=lambda path: path.parent.name != slug):
        with suppress(EntryNotFound, EntryInvalid, PathRefused):
            entry = store.read(f"{PROJECTS}/{project.parent.name}/{IDEA_NOTE}")
            if (when := entry.extra.get("promoted")) and str(entry.extra.get("idea", project.parent.name)) == slug:
                return f"the idea {slug} was promoted on {when}: it is the project {PROJECTS}/{project.parent.name} now"
    return None


def ideas(store: VaultStore) -> Iterator[Entry]:
    """The notes of all ideas in the incubator, by path; those that cannot be read or named are passed over."""
    for entry in store.readable(filter(is_idea_path, store.walk())):
        try:
            idea_folder(slug_of(entry.path))
        except EntryInvalid as error:
            store.passed_over[entry.path] = str(error)
            continue
        yield entry


def link_of(store: VaultStore, path: str) -> str:
    """The path of a note as Obsidian links it from Ideas.md."""
    return f"{store.vault.name}/{path}"


# Ideas.md


def pitch_of(entry: Entry) -> str:
    """What the idea says, without the context that the miner put behind it."""
    return own_words(statement_of(entry.body))


def said_on(entry: Entry) -> date | None:
    """The day on which the idea came up, in this machine's zone; of a note that does not tell, the day it was made."""
    return parse_local_day(entry.surfaced_at) or parse_local_day(entry.created)


def section_of(store: VaultStore, entry: Entry) -> tuple[str, date]:
    """The idea's section of Ideas.md, and the day it bears.

    What the heading says already is not said again, where there is more: what the user went on to say, or the project.
    """
    pitch, day = pitch_of(entry), said_on(entry) or store.today()
    if entry.sources and entry.sources[0].host == BY_COMMAND:  # It stands as the user wrote it.
        return section_text(day, entry.name, pitch, link_of(store, entry.path)), day
    title = heading_of(entry.name, pitch)
    summary = summary_beside(title, pitch, said_next(entry.body, pitch))
    if not summary:
        summary = f"Said while working on {entry.project}." if entry.project else pitch
    return section_text(day, title, summary, link_of(store, entry.path)), day


def is_surfaced(settings: Settings, store: VaultStore, path: str) -> bool:
    """Does Ideas.md list the idea at `path`? Raises VaultUnavailable, OutsideUnavailable, SettingsError."""
    return has_section(text_of(store, str(settings.ideas_path)), link_of(store, path))


def decided_ideas(settings: Settings, store: VaultStore) -> frozenset[str]:
    """Paths of the ideas in the incubator on which the user has decided: into Ideas.md, not into it, or to be kept.

    In the mode `silent` Ideas.md is written unasked, and says nothing of what the user thinks.
    """
    listed = None
    if settings.memory.review_mode != "silent":
        with suppress(OutsideUnavailable):
            listed = text_of(store, str(settings.ideas_path))
    return frozenset(
        entry.path
        for entry in ideas(store)
        if entry.extra.get("surface") == DECLINED
        or "kept" in entry.extra
        or has_section(listed, link_of(store, entry.path))
    )


def surface_change(settings: Settings, store: VaultStore, entry: Entry) -> Change | None:
    """Ideas.md with the idea's section put in; None: it is there already. Raises OutsideUnavailable."""
    target = str(settings.ideas_path)
    before = text_of(store, target)
    if has_section(before, link_of(store, entry.path)):
        return None
    text = with_section(before, *section_of(store, entry))
    return Change(target, before, Scrubbed.trusted(text, reason="the user's own file and a scrubbed idea"))


def clean_beside_list(settings: Settings, store: VaultStore) -> int:
    """Delete what killed writers of Ideas.md left beside it; how many files."""
    return clean_outside(store, str(settings.ideas_path))


def question_change(settings: Settings, store: VaultStore, entry: Entry) -> Change | None:
    """The note that asks; None: it asks already."""
    slug = slug_of(entry.path)
    if store.exists(question_path(slug)):
        return None
    preview, _ = section_of(store, entry)
    quoted = "\n".join(f"> {line}" for line in preview.splitlines())
    question = f"Put this idea into {settings.ideas_path.name}? {entry.name}"
    body = (
        f"{question}\n\n"
        f"Approved, this is added to {settings.ideas_path.name}, your own list outside {store.vault.name}/:\n\n"
        f"{quoted}\n\n"
        f"Rejected, the idea stays in [[{link_of(store, entry.path).removesuffix('.md')}]] and you are not asked again."
    )
    text = store.compose(
        question_path(slug),
        {
            "kind": SURFACE_KIND,
            "status": "pending",
            "group": DEFAULT_GROUP,
            "idea": slug,
            "surfaced_at": entry.surfaced_at,
        },
        Scrubbed.trusted(question, reason="our own words and the scrubbed idea's title"),
        Scrubbed.trusted(body, reason="our own words and the scrubbed idea"),
    )
    return Change(question_path(slug), None, text)


def _may_ask(store: VaultStore) -> bool:
    return sum(1 for _ in (store.vault / DEFAULT_GROUP / REVIEW).glob("surface-*.md")) < MOST_QUESTIONS


def _asked_or_later(settings: Settings, store: VaultStore, note: Change, entry: Entry) -> list[Change]:
    """The note and the question, or the note that is to be asked for once others are answered."""
    if not _may_ask(store):
        return [Change(note.path, note.before, store.render_edit(note.after or "", {"surface": ASK_LATER}))]
    question = question_change(settings, store, entry)
    return [note] if question is None else [note, question]


def ask_next(settings: Settings, journal: Journal) -> int:
    """Put ideas to the user that had to wait, the oldest first, as many as may be asked at a time; how many.

    Raises VaultUnavailable.
    """
    store, asked = journal.store, 0
    if settings.memory.review_mode != "interactive":
        return 0
    with journal.locked():
        waiting = [entry for entry in ideas(store) if entry.extra.get("surface") == ASK_LATER]
        for entry in sorted(waiting, key=lambda one: (one.surfaced_at or "", one.path)):
            if not _may_ask(store):
                break
            with suppress(EditConflict, EntryExists, EntryInvalid):
                # `updated` stays: nobody has come back to the idea.
                text = store.render_edit(entry.text, {"surface": None, "updated": entry.updated})
                note = Change(entry.path, entry.text, text)
                question = question_change(settings, store, entry)
                changes = [note] if question is None else [note, question]
                run = journal.new_run(ASKING_RUN)
                journal.commit(changes, run=run, actor="idea", what=f"asked: {slug_of(entry.path)}")
                asked += 1
    return asked


def is_asking(act: Act) -> bool:
    """Whether the act put an idea that had to wait to the user: the program's own, though another answer gave rise."""
    return act.run.startswith(f"{ASKING_RUN}:")


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
    approved: Change | None = None,
) -> list[Change]:
    """Write an idea's note and, as one act, its section in Ideas.md or the question whether it may be put there.

    `approved` takes away the proposal from which the user made the idea: that is the consent. A question that waits is
    answered by the section. An Ideas.md that cannot be read or written does not keep the idea from being captured.
    Raises as `Journal.commit`.
    """
    store, consent = journal.store, consent_of(settings, requested=requested, confirmed=approved is not None)
    known = [note] if approved is None else [note, approved]
    entry = parse_text(note.path, note.after or "")

    def with_the_list() -> list[Change]:
        changes = [*known]
        if consent is not None:
            section = surface_change(settings, store, entry)
            changes += [] if section is None else [section]
            if is_idea_path(note.path):
                changes += answered_question(store, slug_of(note.path))
        elif settings.memory.review_mode == "interactive":
            changes = _asked_or_later(settings, store, note, entry)
        journal.commit(changes, run=run, actor=actor, what=what, session=session, consent=consent)
        return changes

    if text_of(store, note.path) == note.before:  # Else the note itself is in the way: the journal says so.
        try:
            return retry_edit(with_the_list)
        except (EditConflict, EntryExists):
            log.warning("%s is being written by another program: not surfaced", settings.ideas_path)
        except MemoryVaultError as error:
            if requested:
                raise
            log.warning("an idea was not surfaced: %s", error)
    journal.commit(known, run=run, actor=actor, what=what, session=session)
    return known


def surface(
    settings: Settings, journal: Journal, slug: str, *, run: str, confirmed: bool = False, question: str | None = None
) -> str:
    """Put an idea that is in the incubator into Ideas.md, on the user's word; its note's path.

    The question is answered with it, and with it `question`, the path of the note that asked (a copy of it, perhaps).
    Raises EntryNotFound, EditConflict, BoundaryRefused, VaultUnavailable.
    """
    store = journal.store
    with journal.locked():
        entry = find_idea(store, slug)
        change = surface_change(settings, store, entry)
        changes = [change] if change is not None else []
        if entry.extra.get("surface") is not None:
            changes.append(Change(entry.path, entry.text, store.render_edit(entry.text, {"surface": None})))
        changes += answered_question(store, slug)
        if question not in (None, question_path(slug)) and (asked := text_of(store, question)) is not None:
            changes.append(Change(question, asked, None))
        if changes:
            journal.commit(
                changes,
                run=run,
                actor="review" if confirmed else "idea",
                what=SURFACED + slug,
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
        changes.append(Change(path, before, store.render_edit(before, {"surface": DECLINED})))
    journal.commit(changes, run=run, actor="review", what=f"not surfaced: {slug}")
    return path if before is not None else question


def answered_question(store: VaultStore, slug: str) -> list[Change]:
    """The change that takes away the question whether an idea may be listed, if there is one."""
    text = text_of(store, question_path(slug))
    return [] if text is None else [Change(question_path(slug), text, None)]


def taken_back(store: VaultStore, act: Act, now: str | None) -> str | None:
    """Ideas.md as it is now, without what the act put in; None when that cannot be told any more."""
    if act.moves:
        return follow_links(store, now, [(move.to, move.path) for move in act.moves])
    slugs = (slug_of(change.path) for change in act.changes if is_idea_path(change.path))
    named = [act.what.removeprefix(SURFACED)] if act.what.startswith(SURFACED) else []
    text, found = now, False
    for slug in {*slugs, *named}:
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


def promote(settings: Settings, journal: Journal, slug: str, *, name: str | None = None) -> Promotion:
    """Make a project of an idea: its folder moves to `personal-projects/<name>/`, Ideas.md says so.

    Raises EntryNotFound, EntryExists when there is such a project, EditConflict, VaultUnavailable.
    """
    store = journal.store
    project = validate_slug(name or (slug if is_slug(slug) else slugify(slug)))
    target = f"{PROJECTS}/{project}"

    def attempt(*, annotate: bool) -> Promotion:
        with journal.locked():
            entry = find_idea(store, slug)
            if store.is_taken(target):
                raise EntryExists(f"there is already a project {target}: choose another name with --as")
            return _promote(settings, journal, entry, project, target, annotate=annotate)

    try:
        return retry_edit(partial(attempt, annotate=True))
    except OutsideUnavailable as error:
        log.warning("Ideas.md does not say so: %s", error)
        return retry_edit(partial(attempt, annotate=False))


def _promote(
    settings: Settings, journal: Journal, entry: Entry, project: str, target: str, *, annotate: bool
) -> Promotion:
    store, slug, today = journal.store, slug_of(entry.path), journal.store.today()
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
    changes = [Change(path, entry.text, store.render_edit(entry.text, fields))]
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
    changes += answered_question(store, slug)
    journal.commit(
        changes,
        run=journal.new_run("promote"),
        actor="idea",
        what=f"promoted: {slug}",
        moves=[FolderMove(entry.path.rpartition("/")[0], target)],
        consent=consent_of(settings, requested=True),
    )
    return Promotion(slug, path, annotation)


def follow_links(store: VaultStore, text: str | None, folders: Sequence[tuple[str, str]]) -> str | None:
    """Ideas.md with links that follow ideas from folder to folder; None: there is none to change.

    None leads into the trash, which is emptied: a line says instead how the idea comes back.
    """
    changed = None
    for old, new in folders:
        if text is None:
            break
        before, after = (link_of(store, f"{folder}/{IDEA_NOTE}") for folder in (old, new))
        found: str | None = None
        if new.startswith(f"{IDEA_TRASH}/"):
            found = unlinked(text, before, deleted_line(store.today(), new.rpartition("/")[2]))
        elif old.startswith(f"{IDEA_TRASH}/"):
            found = linked_again(text, old.rpartition("/")[2], after) or relinked(text, before, after)
        else:
            found = relinked(text, before, after)
        if found is not None:
            text = changed = found
    return changed


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
