"""The idea ledger: capture and list ideas (`archive` puts them away, restores and promotes them).

An operation on several files, including `Ideas.md`, is one act of the journal: after a kill it is done completely or
not at all. `Ideas.md` is written only through the boundary.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from shlex import quote

from ...pipelines.ideas_file import (
    first_sentence,
    has_section,
    relinked,
    section_text,
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
    SettingsError,
)
from ...runtime.layout import ARCHIVE, DEFAULT_GROUP, PROJECTS, REVIEW, TRASH
from ...runtime.settings import Settings
from ...runtime.slug import free_slug, idea_slug, validate_user_name
from ...vault.entry import Entry, fingerprint, parse_text, to_link
from ...vault.pending import IDEA_NOTE, INCUBATOR_FOLDER, is_idea_path, question_path
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..boundary import consent_of
from ..journal import Act, Actor, Change, FolderMove, Journal, text_of
from ..retrying import retry_edit

log = logging.getLogger(__name__)

IDEA_ARCHIVE = f"{INCUBATOR_FOLDER}/{ARCHIVE}"
IDEA_TRASH = f"{IDEA_ARCHIVE}/{TRASH}"
MOST_QUESTIONS = 3
"""How many questions about ideas may wait at a time; the next are asked as these are answered."""
ASK_LATER = "later"
"""`surface:` of an idea whose question has to wait."""
BY_COMMAND = "cli"
"""Host of an idea that the user captured with `memory idea`."""
DECLINED = "declined"
"""`surface:` of an idea that the user does not want in Ideas.md."""
ASKING_RUN = "ask-idea"
"""Run name prefixes of acts that ask about an idea which had to wait."""
SURFACED = "surfaced: "
"""How `what` begins in acts that put an idea into Ideas.md on the user's word."""


def idea_folder(slug: str) -> str:
    """Return the vault-relative folder of an idea in the incubator, whatever its name. Raises EntryInvalid."""
    return f"{INCUBATOR_FOLDER}/{validate_user_name(slug)}"


def slug_of(path: str) -> str:
    """Return an idea's slug, which is the name of its folder."""
    return path.rsplit("/", 2)[-2]


def has_own_title(title: str, summary: str) -> bool:
    """Whether the title says more than the summary; a mined idea's title is made from its statement."""
    return not content_words(title) <= content_words(summary)


def is_titled_otherwise(idea: Entry, title: str, summary: str) -> bool:
    """Whether the title marks a different idea than `idea`, although the two summaries are alike."""
    if not (has_own_title(idea.title, statement_of(idea.body)) and has_own_title(title, summary)):
        return False
    return content_words(idea.title) != content_words(title) and fingerprint(idea.title) != fingerprint(title)


def find_idea(store: VaultStore, slug: str) -> Entry:
    """Return the note of an idea in the incubator.

    Raises EntryNotFound, with what became of the idea if that is known, EntryInvalid, VaultUnavailable.
    """
    path = f"{idea_folder(slug)}/{IDEA_NOTE}"
    try:
        return store.read(path)
    except EntryNotFound as error:
        unknown = f"there is no idea {slug}: `memory idea list` shows what there is"
        raise EntryNotFound(became_of(store, slug) or unknown) from error


def became_of(store: VaultStore, slug: str) -> str | None:
    """Return what was done with an idea that has left the incubator, in words; None if unknown."""
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
    """Return the notes of all ideas in the incubator, by path, without those that cannot be read or named."""
    for entry in store.readable(filter(is_idea_path, store.walk())):
        try:
            idea_folder(slug_of(entry.path))
        except EntryInvalid as error:
            store.passed_over[entry.path] = str(error)
            continue
        yield entry


def asked_idea(store: VaultStore, question: Entry) -> str:
    """Return the slug of the idea that the question is about, even if its folder has been renamed.

    The note in a renamed folder keeps the earlier name as its `slug`. If none or several match, or the folder is in
    place, the question's own slug is returned.
    """
    slug = str(question.extra.get("idea") or "")
    with suppress(EntryInvalid, PathRefused):
        if not store.is_taken(idea_folder(slug)):
            renamed = [slug_of(idea.path) for idea in ideas(store) if idea.slug == slug]
            return renamed[0] if len(renamed) == 1 else slug
    return slug


def link_of(store: VaultStore, path: str) -> str:
    """Return a note's path in the form of an Obsidian link in Ideas.md, beside the vault; links of notes in it are
    `to_link`."""
    return f"{store.vault.name}/{path}"


# Ideas.md


def list_there(settings: Settings) -> Path | None:
    """Return the user's list of ideas; None if there is none."""
    with suppress(SettingsError):  # No vault is set, or the list would lie in it.
        if settings.ideas_path.is_file():
            return settings.ideas_path
    return None


def pitch_of(entry: Entry) -> str:
    """Return the idea's text without the context that the miner added."""
    return own_words(statement_of(entry.body))


def said_on(entry: Entry) -> date | None:
    """Return the local date on which the idea came up; if the note does not say, the date of the note."""
    return parse_local_day(entry.surfaced_at) or parse_local_day(entry.created)


def section_of(store: VaultStore, entry: Entry) -> tuple[str, date]:
    """Return the idea's section of Ideas.md and its date.

    A title that a miner made of the pitch gives way to the pitch's first sentence, and the others follow it.
    """
    pitch, day = pitch_of(entry), said_on(entry) or store.today()
    title, summary = entry.name, pitch
    is_given = entry.written_by_agent or (entry.sources and entry.sources[0].host == BY_COMMAND)
    if not is_given and not has_own_title(title, pitch):
        title, summary = first_sentence(pitch)
        summary = summary or (f"Said while working on {entry.project}." if entry.project else pitch)
    return section_text(day, title, summary, link_of(store, entry.path)), day


def is_surfaced(settings: Settings, store: VaultStore, path: str) -> bool | None:
    """Whether Ideas.md lists the idea at `path`; None if that cannot be read."""
    with suppress(MemoryVaultError):
        return has_section(text_of(store, str(settings.ideas_path)), link_of(store, path))
    return None


def decided_ideas(settings: Settings, store: VaultStore) -> frozenset[str]:
    """Return the paths of ideas in the incubator that the user has decided on: into Ideas.md, not into it, or kept.

    In the mode `silent`, Ideas.md is written without asking, so a section there is no decision.
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
    """Return the change that adds the idea's section to Ideas.md; None if it is there. Raises OutsideUnavailable."""
    target = str(settings.ideas_path)
    before = text_of(store, target)
    if has_section(before, link_of(store, entry.path)):
        return None
    text = with_section(before, *section_of(store, entry))
    return Change(target, before, Scrubbed.trusted(text, reason="the user's own file and a scrubbed idea"))


def question_change(settings: Settings, store: VaultStore, entry: Entry) -> Change | None:
    """Return the note that asks whether the idea may be listed; None if it exists."""
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
        f"Rejected, the idea stays in {to_link(entry.path)} and you are not asked again."
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
    """Return the changes that ask about the idea, or mark it to be asked about later."""
    if not _may_ask(store):
        return [Change(note.path, note.before, store.render_edit(note.after or "", {"surface": ASK_LATER}))]
    question = question_change(settings, store, entry)
    return [note] if question is None else [note, question]


def ask_next(settings: Settings, journal: Journal) -> int:
    """Ask about ideas that had to wait, oldest first, as many as may be asked at a time; return how many.

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
                # `updated` stays: the user has not come back to the idea.
                text = store.render_edit(entry.text, {"surface": None, "updated": entry.updated})
                note = Change(entry.path, entry.text, text)
                question = question_change(settings, store, entry)
                changes = [note] if question is None else [note, question]
                run = journal.new_run(ASKING_RUN)
                journal.commit(changes, run=run, actor="idea", what=f"asked: {slug_of(entry.path)}")
                asked += 1
    return asked


def is_asking(act: Act) -> bool:
    """Whether the act asks about an idea that had to wait: the program did it, even if an answer was the occasion."""
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
    """Write an idea's note and, in the same act, its section in Ideas.md or the question whether it may be added.

    `approved` is the proposal that the user accepted, which is the consent; it is removed. A waiting question is
    answered by the section. The idea is captured even if Ideas.md cannot be read or written. Raises as
    `Journal.commit`.
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

    if text_of(store, note.path) == note.before:  # Otherwise the note itself conflicts: the journal reports it.
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
    """Add an idea of the incubator to Ideas.md on the user's word, and return its path.

    This answers the question about it, and `question`, the path of the note that asked (perhaps a copy of it). Raises
    EntryNotFound, EditConflict, BoundaryRefused, VaultUnavailable.
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
    """Record in the idea's note that the user does not want it in Ideas.md; return its path."""
    store = journal.store
    path = f"{idea_folder(slug)}/{IDEA_NOTE}"
    changes = [Change(question, text_of(store, question), None)]
    before = text_of(store, path)
    if before is not None:
        changes.append(Change(path, before, store.render_edit(before, {"surface": DECLINED})))
    journal.commit(changes, run=run, actor="review", what=f"not surfaced: {slug}")
    return path if before is not None else question


def answered_question(store: VaultStore, slug: str) -> list[Change]:
    """Return the change that removes the question whether an idea may be listed, if there is one."""
    text = text_of(store, question_path(slug))
    return [] if text is None else [Change(question_path(slug), text, None)]


def taken_back(store: VaultStore, act: Act, now: str | None) -> str | None:
    """Return the current Ideas.md without what the act added; None if that can no longer be determined."""
    if act.moves:
        return follow_link(store, now, FolderMove(act.moves[0].to, act.moves[0].path))
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
    """Return the path of a new idea of this title: `<slug>`, or the first free one of `<slug>-2`, …"""
    slug = free_slug(idea_slug(title), lambda taken: store.is_taken(f"{INCUBATOR_FOLDER}/{taken}"))
    return f"{INCUBATOR_FOLDER}/{slug}/{IDEA_NOTE}"


def follow_link(store: VaultStore, text: str | None, move: FolderMove, line: str = "") -> str | None:
    """Return Ideas.md with the link to a moved idea updated, and `line` below it; None if it has none."""
    before, after = (link_of(store, f"{folder}/{IDEA_NOTE}") for folder in (move.path, move.to))
    return None if text is None else relinked(text, before, after, line)


def idea_as_json(entry: Entry, surfaced: bool | None) -> Mapping[str, object]:
    """Return an idea in the form of `--json`."""
    return {
        **{name: getattr(entry, name) for name in ("path", "title", "surfaced_at", "occurrences")},
        "slug": slug_of(entry.path),
        "statement": statement_of(entry.body),
        "status": entry.effective_status,
        "session": entry.surfaced_in_session,
        "in_ideas_file": surfaced,
        "research": entry.extra.get("research"),
    }
