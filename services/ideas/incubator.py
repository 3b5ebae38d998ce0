"""List the ideas that nobody came back to in one note, and carry out the user's answers.

Nothing is deleted without an answer. Whether somebody came back is told by the idea's own frontmatter, by a change
of its text since it was last looked at, by links from the user's notes, and by recalls; what only this device
saw is kept in state.db, since receipts and modification times do not last for months.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...index.receipts import read_receipts
from ...pipelines.ideas_file import LINK_LABEL
from ...pipelines.incubation import (
    GC_KIND,
    Answer,
    Engagement,
    StaleIdea,
    is_stale,
    listed,
    parse_answers,
    question_body,
    ticked,
    without_idea,
)
from ...pipelines.research import without_receipt
from ...runtime.days import local_day, parse_local_day
from ...runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound
from ...runtime.layout import ARCHIVE, DEFAULT_GROUP, INBOX, INCUBATOR, REVIEW, TRASH, home_folder
from ...runtime.paths import is_note_name
from ...runtime.settings import Settings
from ...sources.notes import read_note
from ...vault.entry import Entry
from ...vault.pending import IDEAS_LIST, INCUBATOR_FOLDER
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..cursors import Cursors
from ..decision_property import decision_keys, decision_of
from ..journal import Change, Journal, hash_of
from ..retrying import read_seen, retry_edit
from .archive import IdeaOutcome, put_away
from .ledger import find_idea, idea_folder, ideas, link_of, pitch_of, slug_of

log = logging.getLogger(__name__)

SCAN = "incubator"
TITLE = "Ideas that nobody came back to"
HOW_TO_ANSWER = "keep, archive or delete, for all or with names: keep SLUG SLUG; delete SLUG"
MOST_NOTES = 50_000
OWN_CALLERS = frozenset({"research", "review"})
"""Callers in the receipts of our own recalls: looking for what is related is nobody's coming back to an idea."""
GENERATED = ("related-", "research-")
"""Names of what research writes beside an idea: that it names another idea is nobody's coming back to it."""
_OUR_FIELDS = re.compile(r"^(?:research|research_pass|surface): .*\n", re.MULTILINE)
_NOT_NOTES = frozenset({"node_modules", REVIEW, INBOX, ARCHIVE, TRASH})


def refresh_list(settings: Settings, journal: Journal, *, still_owned: Any = lambda: True) -> list[StaleIdea]:
    """Write the note that lists what nobody came back to, or remove it; what it lists. Raises VaultUnavailable.

    A note in which the user has ticked a box is left until that is carried out.
    """
    store = journal.store
    stale = stale_ideas(settings, store)
    if not still_owned():
        return stale
    months = settings.memory.incubator_gc_months
    body = Scrubbed.trusted(question_body(stale, months), reason="our own words and scrubbed ideas")
    with store.lock(), suppress(EditConflict, EntryExists, EntryNotFound):
        try:
            entry = store.read(IDEAS_LIST)
        except EntryNotFound:
            if stale:
                title = Scrubbed.trusted(TITLE, reason="our own words")
                store.create(IDEAS_LIST, {"kind": GC_KIND, "status": "pending", "group": DEFAULT_GROUP}, title, body)
            return stale
        answered = any(listed(entry.body).values()) or decision_of(entry) is not None
        if answered or set(listed(entry.body)) == {idea.slug for idea in stale}:
            return stale
        if stale:
            text = Scrubbed.joined([Scrubbed.trusted(f"# {TITLE}", reason="our own words"), body])
            store.update(IDEAS_LIST, entry.content_hash, body=text)
        else:
            store.remove(IDEAS_LIST, entry.content_hash)
    return stale


def stale_ideas(settings: Settings, store: VaultStore) -> list[StaleIdea]:
    """Ideas that nobody came back to for `memory.incubator_gc_months`, the oldest first."""
    today, months = store.today(), settings.memory.incubator_gc_months
    found = []
    for slug, (entry, engagement) in engagements(settings, store).items():
        last = engagement.last or _modified(store.vault / entry.path)
        if is_stale(last, today, months):
            link = link_of(store, entry.path)
            found.append(StaleIdea(slug, entry.title, pitch_of(entry), link, last))
    return sorted(found, key=lambda idea: (idea.last, idea.slug))


def engagements(settings: Settings, store: VaultStore) -> dict[str, tuple[Entry, Engagement]]:
    """Every idea in the incubator with when somebody last had to do with it; what was seen is put down."""
    entries = {slug_of(entry.path): entry for entry in ideas(store)}
    if not entries:
        return {}
    cursors = Cursors(settings.state.state_db, SCAN)
    seen = cursors.all()
    recalled = _recalls(settings)
    links = _links(settings, store, frozenset(entries))
    found = {}
    for slug, entry in entries.items():
        before = seen.get(slug, {})
        edited = parse_local_day(before.get("edited"))
        text = _users_text(entry)
        if before and before.get("hash") != text:
            edited = _modified(store.vault / entry.path)
        recalls = (parse_local_day(before.get("recalled")), recalled.get(slug))
        last_recall = max((day for day in recalls if day), default=None)
        now = {
            "hash": text,
            "edited": edited.isoformat() if edited else None,
            "recalled": last_recall.isoformat() if last_recall else None,
        }
        if now != before:
            cursors.set(slug, now)
        found[slug] = (entry, Engagement(_written(entry), edited, links.get(slug), last_recall))
    for slug in seen.keys() - entries.keys():
        cursors.forget(slug)
    return found


def _users_text(entry: Entry) -> str:
    """A hash of the note but for what research and the question of Ideas.md write into it, at whatever time they do."""
    return hash_of(without_receipt(_OUR_FIELDS.sub("", entry.text)).strip())


def _written(entry: Entry) -> date | None:
    # Not `surfaced_at`: an old session's idea may have been said years before it was captured.
    stamps = (entry.updated, entry.created, entry.extra.get("kept"))
    return max((day for stamp in stamps if (day := parse_local_day(str(stamp)))), default=None)


def _modified(path: Path) -> date:
    return local_day(path.stat().st_mtime)


def _recalls(settings: Settings) -> dict[str, date]:
    """The last recall of each idea that the receipts on this device know of; they last for 30 days."""
    found: dict[str, date] = {}
    current = Path(settings.state.receipts)
    for file in (*sorted(current.parent.glob(current.name + ".*")), current):
        for line in read_receipts(file):
            if line.get("caller") in OWN_CALLERS:
                continue  # the program's own look-up of another idea is nobody's coming back
            day = parse_local_day(str(line.get("at")))
            hits = line.get("hits")
            for hit in hits if isinstance(hits, list) and day else ():
                path = str(hit.get("path")) if isinstance(hit, dict) else ""
                if day and path.startswith(INCUBATOR_FOLDER + "/"):
                    slug = path[len(INCUBATOR_FOLDER) + 1 :].split("/", 1)[0]
                    found[slug] = max(day, found.get(slug, day))
    return found


def _links(settings: Settings, store: VaultStore, slugs: frozenset[str]) -> dict[str, date]:
    """When a note that links to the idea was last changed, by the idea; notes of the idea itself do not count."""
    wanted = {slug: f"{slug}/_index" for slug in slugs}
    found: dict[str, date] = {}
    for path in _notes(settings, store):
        text = read_note(str(path))
        if text is None or "/_index" not in text:
            continue
        with suppress(OSError):
            text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(LINK_LABEL.strip()))
            for slug, target in wanted.items():
                own = path.parent == store.vault / idea_folder(slug)
                if not own and f"{target}" in text and any(f"{before}{target}" in text for before in ("/", "[[", "(")):
                    day = _modified(path)
                    found[slug] = max(day, found.get(slug, day))
    return found


def _notes(settings: Settings, store: VaultStore) -> Iterator[Path]:
    """The notes of the user's vault, MemoryVault's own questions aside. They are read, never changed."""
    root = store.vault.parent
    home = Path(home_folder(settings.environment))
    if root in (home, Path("/")) and not (root / ".obsidian").is_dir():
        root = store.vault  # it lies in no vault of notes; a home folder is not searched
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NOT_NOTES]
        for name in names:
            if is_note_name(name) and not (INCUBATOR in folder and name.startswith(GENERATED)):
                count += 1
                if count > MOST_NOTES:
                    log.warning("only %d notes were searched for links to ideas", MOST_NOTES)
                    return
                yield Path(folder, name)


# Answers


def decide_on_idea(
    settings: Settings, journal: Journal, slug: str, answer: Answer, *, run: str, expected_hash: str | None = None
) -> IdeaOutcome:
    """The user's answer about one idea, whether the list of those that nobody came back to names it or not.

    It can be taken back as a review's decision. Raises EntryNotFound, EditConflict, VaultUnavailable.
    """
    with journal.locked():
        idea = find_idea(journal.store, slug)
        with suppress(EntryNotFound, EntryInvalid):
            if slug in listed(journal.store.read(IDEAS_LIST).body):
                expected = {slug: expected_hash or idea.content_hash}
                (done,) = answer_listed(settings, journal, IDEAS_LIST, {slug: answer}, run=run, expected=expected)
                return done
        ideas_file = settings.ideas_path
        return put_away(
            journal, slug, answer, run=run, actor="review", ideas_file=ideas_file, expected_hash=expected_hash
        )


def parse_listed(entry: Entry, written: str = "") -> Mapping[str, Answer]:
    """The answers in the note: its ticked boxes and, when `written` is not empty, that line. Raises EntryInvalid."""
    boxes = listed(entry.body)
    twice = [slug for slug, answers in boxes.items() if len(answers) > 1]
    if twice:
        raise EntryInvalid(f"more than one box is ticked for {', '.join(twice)}: leave one")
    answers = ticked(entry.body)
    if not written:
        return answers
    parsed = parse_answers(written, list(boxes))
    if parsed is None:
        raise EntryInvalid(f"{written[:60]!r} is no answer: write {HOW_TO_ANSWER}")
    return {**parsed, **answers}


def answer_listed(
    settings: Settings,
    journal: Journal,
    path: str,
    answers: Mapping[str, Answer],
    *,
    run: str,
    expected: Mapping[str, str] = MappingProxyType({}),
) -> list[IdeaOutcome]:
    """Carry the answers out, one idea after the other, each with its part of the note.

    `expected`: of some ideas the hash of their notes as the user saw them.

    An idea that is gone meanwhile leaves the list. Raises EntryNotFound when the list is gone, EditConflict,
    VaultUnavailable.
    """
    done = []
    for number, (slug, answer) in enumerate(answers.items(), 1):
        is_last = number == len(answers)
        outcome = retry_edit(
            partial(_carry_out, settings, journal, path, slug, answer, run, expected.get(slug), is_last=is_last)
        )
        if outcome is not None:
            done.append(outcome)
    return done


def _carry_out(
    settings: Settings,
    journal: Journal,
    path: str,
    slug: str,
    answer: Answer,
    run: str,
    expected_hash: str | None,
    *,
    is_last: bool,
) -> IdeaOutcome | None:
    """Put one idea away and take it off the list; None where it is gone."""
    with journal.locked():
        rest = _without(journal.store, path, slug, last=is_last)
        try:
            find_idea(journal.store, slug)
        except EntryNotFound:
            journal.commit([rest], run=run, actor="review", what=f"no longer there: {slug}")
            return None
        return put_away(
            journal,
            slug,
            answer,
            run=run,
            actor="review",
            also=[rest],
            ideas_file=settings.ideas_path,
            expected_hash=expected_hash,
        )


def _without(store: VaultStore, path: str, slug: str, *, last: bool) -> Change:
    """The list without one idea; without any it goes. A written decision stays until the last one is done."""
    entry = read_seen(store, path, gone="does not wait any more")
    body = without_idea(entry.body, slug)
    if not listed(body):
        return Change(path, entry.text, None)
    fields = dict.fromkeys(decision_keys(entry)) if last else {}
    text = store.render_edit(entry.text, fields, Scrubbed.trusted(body, reason="the note's own text"))
    return Change(path, entry.text, text)
