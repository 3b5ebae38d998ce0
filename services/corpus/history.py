"""Mine the sessions of the last weeks during set-up, and answer a first question from them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...index.engine import Hit, RecallEngine, RecallQuery
from ...pipelines.likeness import statement_of
from ...pipelines.routing import Tier
from ...runtime.days import SECONDS_PER_DAY
from ...runtime.errors import EntryInvalid, EntryNotFound, IndexUnavailable, QueueUnavailable
from ...runtime.layout import ALWAYS_LOAD, special_folder
from ...runtime.settings import Settings
from ...tasks.queue.enqueue import open_ledger
from ...vault.entry import Entry
from ..stores import vault_store
from .backfill import BackfillRun, Plan, Progress, plan_corpus, progress_of
from .first_question import question_about

HISTORY_DAYS = 30
"""How many days Claude Code keeps transcripts by default."""
POLL_SECONDS = 0.2
MOST_NOTES_ASKED = 5


@dataclass(frozen=True)
class FirstRecall:
    """A question made from a note's words, and the hits of a keyword search."""

    question: str
    note: str
    """Path of the note from which the question was made."""
    hits: tuple[Hit, ...]

    @property
    def answer(self) -> Hit | None:
        """The hit that is the note; None if it was not found."""
        return next((hit for hit in self.hits if hit.path == self.note), None)


def plan_history(settings: Settings, days: int) -> Plan:
    """Plan to mine the sessions of the last `days` that are not mined yet."""
    return plan_corpus(settings, since=time.time() - days * SECONDS_PER_DAY)


def wait_for_history(
    settings: Settings, run: BackfillRun, seconds: float, show: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Wait until the run is mined or `seconds` are over; the worker continues by itself."""
    deadline = time.monotonic() + seconds
    progress = Progress(len(run.jobs), waiting=len(run.jobs))
    while True:
        with suppress(QueueUnavailable), open_ledger(settings) as ledger:
            progress = progress_of(ledger, run)
        show(progress)
        if progress.is_done or time.monotonic() >= deadline:
            return progress
        time.sleep(POLL_SECONDS)


def first_recall(settings: Settings) -> FirstRecall | None:
    """Ask for a memory as a later session would; None if no note has enough words for a question.

    The search is by keywords because vectors come later. Notes from sessions are tried, most certain first, until one
    is found.
    """
    engine = RecallEngine(Path(settings.state.index_db), settings.required_vault_path, None)
    asked = None
    try:
        for entry in _mined_notes(settings):
            question = question_about(statement_of(entry.body))
            if question is None:
                continue
            hits = engine.recall(RecallQuery(question, k=3, all_projects=True)).hits
            recalled = FirstRecall(question, entry.path, hits)
            if recalled.answer is not None:
                return recalled
            asked = asked or recalled
    except (IndexUnavailable, OSError):
        return asked
    finally:
        engine.close()
    return asked


def _mined_notes(settings: Settings) -> list[Entry]:
    """Read MOST_NOTES_ASKED active notes with a session as evidence, most certain and most frequent first."""
    store = vault_store(settings)
    found = []
    for path in store.walk():
        if special_folder(path) not in ("", ALWAYS_LOAD):
            continue
        with suppress(EntryNotFound, EntryInvalid):
            entry = store.read(path)
            if entry.effective_status == "active" and any(source.session for source in entry.sources):
                found.append(entry)
    found.sort(key=_standing, reverse=True)
    return found[:MOST_NOTES_ASKED]


def _standing(entry: Entry) -> tuple[bool, int, str, str]:
    return entry.confidence == Tier.HIGH, entry.occurrences, entry.created or "", entry.path
