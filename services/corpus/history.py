"""Mine the sessions of the last weeks during set-up, and answer a first question from them."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from ...index.engine import Hit, RecallEngine, RecallQuery
from ...index.query import is_significant
from ...pipelines.likeness import content_words, own_words, statement_of
from ...pipelines.routing import Tier
from ...runtime.days import SECONDS_PER_DAY
from ...runtime.errors import IndexUnavailable
from ...runtime.layout import ALWAYS_LOAD, special_folder
from ...runtime.settings import Settings
from ...vault.entry import Entry
from ..stores import vault_store
from .backfill import Plan, plan_corpus

HISTORY_DAYS = 30
"""How many days Claude Code keeps transcripts by default."""
MOST_NOTES_ASKED = 5
MOST_WORDS = 8
LEAST_CONTENT = 2
"""A question needs two content words: a single one occurs in too many notes."""
_CLAUSE_END = re.compile(r"[,.;:!?…]+[\"'”’)\]]*(?=\s|\Z)|\s[–—-]+\s|[()]|[，、。！？；]")
_MARKUP = re.compile(r"`|\*\*")
_EDGES = "\"'“”‘’«»„*_`,.;:!?…()[]"


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
    entries = store.readable(path for path in store.walk() if special_folder(path) in ("", ALWAYS_LOAD))
    active = (entry for entry in entries if entry.effective_status == "active")
    found = [entry for entry in active if any(source.session for source in entry.sources)]
    found.sort(key=lambda e: (e.confidence == Tier.HIGH, e.occurrences, e.created or "", e.path), reverse=True)
    return found[:MOST_NOTES_ASKED]


def question_about(statement: str) -> str | None:
    """Return a question that quotes the first clause with at least LEAST_CONTENT content words, from the first of them
    to the last, at most MOST_WORDS; None if there is no such clause."""
    for clause in _CLAUSE_END.split(_MARKUP.sub("", own_words(statement))):
        words = clause.split()
        bare = [word.strip(_EDGES).lower() for word in words]
        content = [at for at, word in enumerate(bare) if content_words(word) and is_significant(word)]
        if len(content) >= LEAST_CONTENT:
            quoted = " ".join(words[content[0] : content[-1] + 1][:MOST_WORDS]).strip(_EDGES).replace('"', "'")
            return f'what did I say about "{quoted}"?'
    return None
