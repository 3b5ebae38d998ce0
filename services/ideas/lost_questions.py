"""Settle questions about ideas whose folder the user has renamed, moved or deleted, in Obsidian or by hand.

Otherwise they would wait forever and, as few may wait at a time, block the questions about later ideas.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from ...pipelines.incubation import SURFACE_KIND
from ...runtime.errors import EditConflict, EntryExists, EntryInvalid, EntryNotFound, OutsideUnavailable, PathRefused
from ...runtime.layout import REVIEW
from ...runtime.settings import Settings
from ...vault.entry import Entry
from ...vault.pending import IDEA_NOTE, is_question_path
from ...vault.store import VaultStore
from ..decision_property import decision_of
from ..journal import Change, Journal, text_of
from .ledger import ask_next, idea_folder, ideas, is_surfaced, question_change, slug_of

ARRIVING_SECONDS = 3600.0
"""A question may reach this device before its idea does, so a newer one is left alone."""


def asked_idea(store: VaultStore, question: Entry) -> str:
    """Return the slug of the question's idea, even if its folder has been renamed.

    The note in a renamed folder keeps the earlier name as its `slug`. If none or several match, or the folder is in
    place, the question's own slug is returned.
    """
    slug = str(question.extra.get("idea") or "")
    with suppress(EntryInvalid, PathRefused):
        if store.is_taken(idea_folder(slug)):
            return slug
        renamed = [slug_of(idea.path) for idea in ideas(store) if idea.slug == slug]
        if len(renamed) == 1:
            return renamed[0]
    return slug


def settle_lost_questions(settings: Settings, journal: Journal, now: float) -> int:
    """Ask about a renamed idea under its new name, and remove questions about missing ideas; return how many changed.

    `now` is Unix time. Raises VaultUnavailable.
    """
    store, settled = journal.store, 0
    with journal.locked():
        for question in [*_lost(store)]:
            with suppress(
                EditConflict, EntryExists, EntryInvalid, EntryNotFound, OutsideUnavailable, FileNotFoundError
            ):
                settled += _settle(settings, journal, question, now)
    if settled:
        ask_next(settings, journal)
    return settled


def _lost(store: VaultStore) -> Iterator[Entry]:
    for question in store.readable(path for path in store.walk_special((REVIEW,)) if is_question_path(path)):
        # A folder that links out of the vault counts as present.
        with suppress(EntryInvalid, PathRefused):
            slug = str(question.extra.get("idea") or "")
            if question.kind == SURFACE_KIND and not store.is_taken(idea_folder(slug)):
                yield question


def _settle(settings: Settings, journal: Journal, question: Entry, now: float) -> bool:
    store, slug = journal.store, asked_idea(journal.store, question)
    changes = [Change(question.path, text_of(store, question.path), None)]
    what = "asked no more, the idea is gone"
    if store.is_taken(idea_folder(slug)):
        if decision_of(question) is not None:
            return False  # The review carries it out.
        what = "asked under its new name"
        idea = store.read(f"{idea_folder(slug)}/{IDEA_NOTE}")
        if "surface" not in idea.extra and not is_surfaced(settings, store, idea.path):
            again = question_change(settings, store, idea)
            changes += [] if again is None else [again]
    elif abs(now - os.stat(store.vault / question.path).st_ctime) < ARRIVING_SECONDS:
        return False
    journal.commit(changes, run=journal.new_run("idea"), actor="idea", what=f"{what}: {slug}")
    return True
