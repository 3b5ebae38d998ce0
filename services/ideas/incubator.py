"""List forgotten ideas in one note, and carry out the user's answers.

Nothing is deleted without an answer. An idea is forgotten if nobody has come back to it: judged by its frontmatter,
changes of its text, links from the user's notes, and recalls. What only this device saw is kept in state.db, because
receipts and modification times do not last for months.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

from ...index.receipts import read_receipts
from ...pipelines.ideas_file import LINK_LABEL
from ...pipelines.incubation import (
    GC_KIND,
    Answer,
    StaleIdea,
    is_stale,
    listed,
    question_body,
    without_idea,
)
from ...pipelines.research import without_receipt
from ...runtime.days import local_day, parse_local_day
from ...runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound
from ...runtime.layout import ARCHIVE, DEFAULT_GROUP, INBOX, INCUBATOR, META, REVIEW, TRASH, home_folder
from ...runtime.paths import is_note_name
from ...runtime.settings import Settings
from ...sources.notes import read_note
from ...vault.entry import Entry, hash_of
from ...vault.pending import IDEAS_LIST, INCUBATOR_FOLDER
from ...vault.scrubbed import Scrubbed
from ...vault.store import VaultStore
from ..cursors import Cursors
from ..decision_property import DecisionOutcome, decision_keys
from ..journal import Change, Journal
from ..retrying import retry_edit
from .archive import put_away
from .ledger import find_idea, idea_folder, ideas, pitch_of, slug_of
from .research import notes_root

log = logging.getLogger(__name__)

SCAN = "incubator"
TITLE = "Ideas that nobody came back to"
MOST_NOTES = 50_000
OWN_CALLERS = frozenset({"research", "review"})
"""Callers of the program's own recalls: a search for related entries is not a user coming back to an idea."""
GENERATED = ("related-", "research-")
"""Names of the notes that research writes beside an idea; their links to other ideas do not count."""
_OUR_FIELDS = re.compile(r"^(?:research|surface): .*\n", re.MULTILINE)
_NOT_NOTES = frozenset({"node_modules"})
_OURS_WITHOUT_NOTES = _NOT_NOTES | {REVIEW, INBOX, ARCHIVE, TRASH, META}
"""Folders of MemoryVault itself; the user's may have the same names."""


def refresh_list(settings: Settings, journal: Journal, *, still_owned: Any = lambda: True) -> list[StaleIdea]:
    """Write the note that lists forgotten ideas, or remove it; return the ideas listed. Raises VaultUnavailable.

    A note with a ticked box stays unchanged until the answer is carried out.
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
        if any(listed(entry.body).values()) or set(listed(entry.body)) == {idea.slug for idea in stale}:
            return stale
        if stale:
            text = Scrubbed.joined([Scrubbed.trusted(f"# {TITLE}", reason="our own words"), body])
            store.update(IDEAS_LIST, entry.content_hash, body=text)
        else:
            store.remove(IDEAS_LIST, entry.content_hash)
    return stale


def stale_ideas(settings: Settings, store: VaultStore) -> list[StaleIdea]:
    """Return the ideas that nobody came back to for `memory.incubator_gc_months`, oldest first."""
    today, months = store.today(), settings.memory.incubator_gc_months
    found = []
    for entry, last in _last_used(settings, store):
        if is_stale(last, today, months):
            found.append(StaleIdea(slug_of(entry.path), entry.title, pitch_of(entry), entry.path, last))
    return sorted(found, key=lambda idea: (idea.last, idea.slug))


def _last_used(settings: Settings, store: VaultStore) -> list[tuple[Entry, date]]:
    """Return every idea in the incubator with the day when somebody last used it, and record what was observed."""
    entries = {slug_of(entry.path): entry for entry in ideas(store)}
    if not entries:
        return []
    cursors = Cursors(settings.state.state_db, SCAN)
    seen = cursors.all()
    recalled = _recalls(settings)
    links = _links(settings, store, frozenset(entries))
    found = []
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
        days = (_written(entry), edited, links.get(slug), last_recall)
        last = max((day for day in days if day), default=None)
        found.append((entry, last or _modified(store.vault / entry.path)))
    for slug in seen.keys() - entries.keys():
        cursors.forget(slug)
    return found


def _users_text(entry: Entry) -> str:
    """Return a hash of the note without what research and the question about Ideas.md add to it."""
    return hash_of(without_receipt(_OUR_FIELDS.sub("", entry.text)).strip())


def _written(entry: Entry) -> date | None:
    # Not `surfaced_at`: an idea of an old session may have been stated years before its capture.
    stamps = (entry.updated, entry.created, entry.extra.get("kept"))
    return max((day for stamp in stamps if (day := parse_local_day(str(stamp)))), default=None)


def _modified(path: Path) -> date:
    return local_day(path.stat().st_mtime)


def _recalls(settings: Settings) -> dict[str, date]:
    """Return the last recall of each idea in this device's receipts, which are kept for 30 days."""
    found: dict[str, date] = {}
    current = Path(settings.state.receipts)
    for file in (*sorted(current.parent.glob(current.name + ".*")), current):
        for line in read_receipts(file):
            if line.get("caller") in OWN_CALLERS:
                continue  # The program's own search for related ideas.
            day = parse_local_day(str(line.get("at")))
            hits = line.get("hits")
            for hit in hits if isinstance(hits, list) and day else ():
                path = str(hit.get("path")) if isinstance(hit, dict) else ""
                if day and path.startswith(INCUBATOR_FOLDER + "/"):
                    slug = path[len(INCUBATOR_FOLDER) + 1 :].split("/", 1)[0]
                    found[slug] = max(day, found.get(slug, day))
    return found


def _links(settings: Settings, store: VaultStore, slugs: frozenset[str]) -> dict[str, date]:
    """Return, by idea, when a note that links to it was last changed; the idea's own notes do not count."""
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
    """Yield the notes of the user's vault without MemoryVault's own questions. They are only read."""
    root = notes_root(store.vault, Path(home_folder(settings.environment))) or store.vault
    count = 0
    for folder, folders, names in os.walk(root):
        left_out = _OURS_WITHOUT_NOTES if Path(folder).is_relative_to(store.vault) else _NOT_NOTES
        folders[:] = [name for name in folders if not name.startswith(".") and name not in left_out]
        for name in names:
            if is_note_name(name) and not (INCUBATOR in folder and name.startswith(GENERATED)):
                count += 1
                if count > MOST_NOTES:
                    log.warning("only %d notes were searched for links to ideas", MOST_NOTES)
                    return
                yield Path(folder, name)


# Answers


def decide_on_idea(
    settings: Settings,
    journal: Journal,
    slug: str,
    answer: Answer,
    *,
    run: str,
    list_path: str = IDEAS_LIST,
    expected_hash: str | None = None,
) -> DecisionOutcome:
    """Carry out the user's answer about one idea, and take it off the list of forgotten ideas, if it is there.

    It can be undone like a review decision. An idea that has gone is taken off the list, too. Raises EntryNotFound,
    EditConflict, VaultUnavailable.
    """

    def attempt() -> DecisionOutcome:
        with journal.locked():
            rest = _without(journal.store, list_path, slug)
            try:
                find_idea(journal.store, slug)
            except EntryNotFound:
                if rest:
                    journal.commit(rest, run=run, actor="review", what=f"no longer there: {slug}")
                raise
            seen, file = expected_hash, settings.ideas_path
            return put_away(
                journal, slug, answer, run=run, actor="review", also=rest, ideas_file=file, expected_hash=seen
            )

    return retry_edit(attempt)


def parse_listed(entry: Entry) -> Mapping[str, Answer]:
    """Return the answers in the note: its ticked boxes. Raises EntryInvalid."""
    boxes = {slug: answers for slug, answers in listed(entry.body).items() if answers}
    twice = [slug for slug, answers in boxes.items() if len(answers) > 1]
    if twice:
        raise EntryInvalid(f"more than one box is ticked for {', '.join(twice)}: leave one")
    return {slug: answers[0] for slug, answers in boxes.items()}


def _without(store: VaultStore, path: str, slug: str) -> list[Change]:
    """Return the change of the list without one idea, and without an earlier error; an empty list is removed."""
    try:
        entry = store.read(path)
    except (EntryNotFound, EntryInvalid):
        return []
    if slug not in listed(entry.body):
        return []
    body = without_idea(entry.body, slug)
    if not listed(body):
        return [Change(path, entry.text, None)]
    fields = dict.fromkeys(decision_keys(entry))
    text = store.render_edit(entry.text, fields, Scrubbed.trusted(body, reason="the note's own text"))
    return [Change(path, entry.text, text)]
