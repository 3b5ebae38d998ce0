"""Read and check a model's answer about a window: only what was said there becomes a candidate.

A model can be wrong, or misled by text in the session. So the quote must be in the turn that the model names, and only
what the user typed can be saved unasked. A reworded statement must not name anything that was not said.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..candidate import CATEGORIES, Candidate, Category, moment
from ..likeness import wording_of
from ..scrub import findings
from .context import occasion
from .forms import explicit_form, runs_downloads
from .linear import NgramReader
from .miner import ProjectOf
from .model_windows import SentTurn, Window
from .sentences import sentences
from .statement import needs_neighbour, rarely_lasts, statement
from .surroundings import is_own

MAX_CANDIDATES = 20
"""Most candidates of one window; a model that proposes more is not selective."""
MAX_QUOTE_CHARS = 600
MAX_STATEMENT_CHARS = 300
MAX_REASON_CHARS = 120
LEAST_QUOTE_WORDS = 2
LEAST_GROUNDED = 0.6
"""Least share of a statement's words that must have been said."""
LEAST_OVERLAP = 0.6
"""Least share of common words of two candidates of one record that are the same."""
EXCERPT_CHARS = 700
MODEL_SCORE = 0.6

_AGENTS = frozenset({"fix", "idea", "workflow"})
"""Categories for the agent's own words; only the user's words show what the user wants."""
_CLAUSE = re.compile(r"[:;“”\"`]\s*")
"""Matches what an agent writes before text that it repeats: a colon, or quotes."""
_HERE = Path(__file__).parent


@cache
def system_prompt() -> str:
    """Return the instructions to the model."""
    return (_HERE / "prompt.md").read_text("utf-8")


@cache
def answer_schema() -> Mapping[str, Any]:
    """Return the JSON schema of an answer."""
    schema: Mapping[str, Any] = json.loads((_HERE / "answer_schema.json").read_text("utf-8"))
    return schema


@dataclass(frozen=True)
class Reading:
    """An answer's candidates, and the number of dropped items, by reason."""

    candidates: tuple[Candidate, ...]
    dropped: Mapping[str, int]
    read: frozenset[str] = frozenset()
    """Record ids of the user's messages that the model has read; empty if items were dropped, since these may mean
    any message."""


class _Dropped(Exception):
    """An item of an answer is no candidate."""


def read_answer(value: Mapping[str, Any], window: Window, project_of: ProjectOf) -> Reading:
    """Read the candidates of an answer to `window`. Never raises: invalid items are dropped and counted."""
    items = value.get("candidates")
    if not isinstance(items, list):
        return Reading((), {"not as the schema says": 1})
    found: list[Candidate] = []
    dropped: Counter[str] = Counter()
    if len(items) > MAX_CANDIDATES:
        dropped["too many"] = len(items) - MAX_CANDIDATES
    for item in items[:MAX_CANDIDATES]:
        try:
            found.append(_candidate(item, window, project_of))
        except _Dropped as why:
            dropped[str(why)] += 1
    return Reading(tuple(found), dict(dropped), frozenset() if dropped else window.whole_messages)


@dataclass(frozen=True)
class _Item:
    turn: int
    quote: str
    category: Category
    statement: str
    reason: str
    standing_rule: bool
    scope: str


def _item(value: object) -> _Item:
    if not isinstance(value, dict):
        raise _Dropped("not as the schema says")
    turn, category, rule = value.get("turn"), value.get("category"), value.get("standing_rule", False)
    texts = [value.get(name) for name in ("quote", "statement", "reason")]
    if (
        not isinstance(turn, int)
        or isinstance(turn, bool)
        or category not in CATEGORIES
        or not isinstance(rule, bool)
        or not all(isinstance(text, str) for text in texts)
    ):
        raise _Dropped("not as the schema says")
    # No NUL and no character that reorders text goes into a note; the quote is compared with the turn as it is.
    quote = " ".join(str(texts[0]).split())
    text, reason = map(_printable, map(str, texts[1:]))
    return _Item(turn, quote, category, text, reason[:MAX_REASON_CHARS], rule, str(value.get("scope")))


def _printable(text: str) -> str:
    """Put a text on one line, with a blank for each character that is not printable."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _candidate(value: object, window: Window, project_of: ProjectOf) -> Candidate:
    item = _item(value)
    if not 1 <= item.turn <= len(window.turns):
        raise _Dropped("no such turn")
    sent = window.turns[item.turn - 1]
    at = _sentences_at(sent.turn.text, *_find(item.quote, sent.turn.text))
    if runs_downloads(sent.turn.text[slice(*at)]) or runs_downloads(item.statement):
        raise _Dropped("runs what it downloads")
    project = (project_of(sent.turn.cwd) or None) if sent.turn.cwd else None
    if sent.turn.is_users_words:
        return _of_user(item, sent, at, project)
    return _of_agent(item, sent, at, project)


def _find(quote: str, text: str) -> tuple[int, int]:
    """Find the quote in the text; all white space is equal."""
    words = quote.split()
    if len(words) < LEAST_QUOTE_WORDS or len(quote) > MAX_QUOTE_CHARS:
        raise _Dropped("quote too short or too long")
    match = re.search(r"\s+".join(re.escape(word) for word in words), text)
    if match is None:
        raise _Dropped("quote not in the turn")
    return match.span()


def _sentences_at(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a quote to whole sentences, so that quotes of different length give one memory."""
    touched = [part for part in sentences(text) if part.start < end and start < part.end]
    return (min(start, touched[0].start), max(end, touched[-1].end)) if touched else (start, end)


def _of_user(item: _Item, sent: SentTurn, at: tuple[int, int], project: str | None) -> Candidate:
    if not sent.conversation:
        raise _Dropped("not in words the user typed")
    said = sent.turn.text[slice(*at)]
    own = statement(said)
    confirmed = sent.confirmed and is_own(sent.turn.text, *at, NgramReader.name)
    saves = (
        item.standing_rule and confirmed and item.category != "idea" and not findings(said) and not rarely_lasts(said)
    )
    source = f"{sent.turn.text}\n{sent.turn.about}\n{sent.said}"
    # Only the user's own words are saved unasked.
    rewords = not saves and _is_grounded(item.statement, source)
    return Candidate(
        category=item.category,
        statement=item.statement if rewords else own,
        reason=item.reason or "found by a model",
        role="user",
        records=(sent.turn.record,),
        excerpt=sent.turn.text[:EXCERPT_CHARS],
        session=sent.turn.session,
        project=project,
        scope="personal" if project is None or (item.scope == "personal") else "project",
        standing_rule=saves,
        claimed_rule=not saves,
        score=MODEL_SCORE,
        said=own if rewords else None,
        said_at=moment(sent.turn.timestamp),
        confirmed=confirmed,
        occasion=occasion(sent.turn, sent.said) if needs_neighbour(own) else "",
    )


def _of_agent(item: _Item, sent: SentTurn, at: tuple[int, int], project: str | None) -> Candidate:
    own = " ".join(sent.turn.text[slice(*at)].strip(" *").split())
    if item.category not in _AGENTS or any(map(explicit_form, _CLAUSE.split(own))):
        raise _Dropped("a rule in words that are not the user's")
    grounded = _is_grounded(item.statement, sent.turn.text)
    return Candidate(
        category=item.category,
        statement=item.statement if grounded else own,
        reason=item.reason or "found by a model",
        role="assistant",
        records=(sent.turn.record,),
        excerpt=own,
        session=sent.turn.session,
        project=project,
        scope="project" if sent.turn.cwd else "personal",
        typed=False,
        score=MODEL_SCORE,
        said=own if grounded else None,
        said_at=moment(sent.turn.timestamp),
    )


def _is_grounded(text: str, source: str) -> bool:
    """Whether a reworded statement says only what was said, and does not deny what was not denied."""
    if len(text.split()) < LEAST_QUOTE_WORDS or len(text) > MAX_STATEMENT_CHARS:
        return False
    lowered, own, said = source.lower(), wording_of(text), wording_of(source)
    if any(token not in lowered for token in own.telling) or not own.words:
        return False
    return len(own.words & said.words) >= LEAST_GROUNDED * len(own.words) and bool(own.refused) <= bool(said.refused)


def merge_candidates(
    local: Sequence[Candidate], modelled: Sequence[Candidate], read: Collection[str] = ()
) -> tuple[Candidate, ...]:
    """Join both miners' candidates without doubles; where both have one, the local one in the model's words.

    What the local reader only thinks likely, and the model did not name in a message that it read (`read`: record
    ids), is no proposal: it goes to the inbox, and an idea is left out. Three of four such proposals were wrong
    (docs/benchmarks/reflection.md).
    """
    result = list(local)
    named: set[int] = set()
    for candidate in modelled:
        place = next((index for index, known in enumerate(result) if _is_double(candidate, known)), None)
        named.add(len(result) if place is None else place)
        if place is None:
            result.append(candidate)
        elif not result[place].standing_rule and result[place].said is None and candidate.said is not None:
            known = result[place]
            result[place] = replace(
                known,
                statement=candidate.statement,
                said=known.statement,
                claimed_rule=known.claimed_rule or candidate.claimed_rule,
            )
    kept: list[Candidate] = []
    for index, one in enumerate(result):
        is_only_likely = one.limit > 0 and not one.standing_rule
        if index in named or not is_only_likely or not set(one.records) <= set(read):
            kept.append(one)
        elif one.category != "idea":
            kept.append(replace(one, claimed_rule=False, limit=0.0))
    return tuple(kept)


def _is_double(candidate: Candidate, known: Candidate) -> bool:
    if not set(candidate.records) & set(known.records) or candidate.role != known.role:
        return False
    if candidate.identity == known.identity:
        return True
    mine, other = wording_of(candidate.identity).words, wording_of(known.identity).words
    shared = len(mine & other) / max(1, min(len(mine), len(other)))
    return shared >= LEAST_OVERLAP
