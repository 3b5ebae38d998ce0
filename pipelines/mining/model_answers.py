"""Reading a model's answer about a window, and checking it: only what was said there becomes a candidate.

A model can be wrong, and the session it read may hold text that was written to mislead it. So the quote decides,
not the model: it must stand in the turn that is named, whose speaker says how far it can be trusted; whether it is a
standing rule is for the rules of the local miner to say; a statement in other words may name nothing that was not said.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..candidate import CATEGORIES, Candidate, Category, moment
from ..likeness import Relation, content_words, own_words, relation, wording_of
from .features import Message, message
from .local_miner import ProjectOf, candidate_of_user
from .model_windows import SentTurn, Window
from .sentences import Sentence
from .standing_rules import downloads_and_runs, standing_rule

MAX_CANDIDATES = 20
"""Most candidates of one window; a model that proposes more is not selective."""
MAX_QUOTE_CHARS = 600
MAX_STATEMENT_CHARS = 300
MAX_REASON_CHARS = 120
LEAST_QUOTE_WORDS = 2
LEAST_GROUNDED = 0.6
"""Least share of a statement's words that must have been said."""
LEAST_OVERLAP = 0.6
"""Least share of common words from which on two candidates of one record are the same."""
MODEL_SCORE = 0.6

_RULES = frozenset({"preference", "correction"})
_AGENTS = frozenset({"fix", "idea", "workflow"})
"""Categories that the agent's own words may show. What the user wants, only the user's words show."""
_CLAUSE = re.compile(r"[:;“”\"`]\s*")
"""Matches what an agent writes before text that it repeats: a colon, or quotes."""
_HERE = Path(__file__).parent


@cache
def system_prompt() -> str:
    """The instructions to the model."""
    return (_HERE / "prompt.md").read_text("utf-8")


@cache
def answer_schema() -> Mapping[str, Any]:
    """JSON schema of an answer."""
    schema: Mapping[str, Any] = json.loads((_HERE / "answer_schema.json").read_text("utf-8"))
    return schema


@dataclass(frozen=True)
class Reading:
    """An answer's candidates, and the number of dropped items, by reason."""

    candidates: tuple[Candidate, ...]
    dropped: Mapping[str, int]


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
    return Reading(tuple(found), dict(dropped))


@dataclass(frozen=True)
class _Item:
    turn: int
    quote: str
    category: Category
    statement: str
    reason: str
    standing_rule: bool


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
    # Neither NUL nor a character that turns the line around goes into a note; a quote has to stand in the turn.
    quote = " ".join(str(texts[0]).split())
    statement, reason = map(_printable, map(str, texts[1:]))
    return _Item(turn, quote, category, statement, reason[:MAX_REASON_CHARS], rule)


def _printable(text: str) -> str:
    """On one line, with a blank for each character that is not printed."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _candidate(value: object, window: Window, project_of: ProjectOf) -> Candidate:
    item = _item(value)
    if not 1 <= item.turn <= len(window.turns):
        raise _Dropped("no such turn")
    sent = window.turns[item.turn - 1]
    start, end = _find(item.quote, sent.turn.text)
    said = message(sent.turn)
    index = _sentence_at(said.sentences, start, end)
    if downloads_and_runs(said.sentences[index].text) or downloads_and_runs(item.statement):
        raise _Dropped("runs what it downloads")
    project = (project_of(sent.turn.cwd) or None) if sent.turn.cwd else None
    if sent.turn.is_users_words:
        return _of_user(item, sent, said, index, project)
    return _of_agent(item, sent, said.sentences[index], project)


def _find(quote: str, text: str) -> tuple[int, int]:
    """Find the quote in the text; all white space is equal."""
    words = quote.split()
    if len(words) < LEAST_QUOTE_WORDS or len(quote) > MAX_QUOTE_CHARS:
        raise _Dropped("quote too short or too long")
    match = re.search(r"\s+".join(re.escape(word) for word in words), text)
    if match is None:
        raise _Dropped("quote not in the turn")
    return match.span()


def _sentence_at(parts: Sequence[Sentence], start: int, end: int) -> int:
    """Find the sentence that contains most of the quote."""
    shares = [(min(end, part.end) - max(start, part.start), -index) for index, part in enumerate(parts)]
    if not shares or max(shares)[0] <= 0:
        raise _Dropped("quote not in a sentence")
    return -max(shares)[1]


def _of_user(item: _Item, sent: SentTurn, said: Message, index: int, project: str | None) -> Candidate:
    part = said.sentences[index]
    if not part.typed or not sent.conversation:
        raise _Dropped("not in words the user typed")
    rule = standing_rule(part.text) if item.category != "idea" and part.spoken else None
    own = candidate_of_user(
        said,
        index,
        item.category,
        item.reason or "found by a model",
        MODEL_SCORE,
        rule=rule,
        agent_said=sent.said,
        project=project,
    )
    if own.standing_rule:
        return own  # What may be saved unasked is said in the user's own words.
    claimed = own.claimed_rule or (item.standing_rule and item.category in _RULES)
    source = f"{sent.turn.text}\n{sent.turn.about}\n{sent.said}"
    if not _is_grounded(item.statement, source, own_words(own.statement)):
        return replace(own, claimed_rule=claimed)
    return replace(own, claimed_rule=claimed, statement=item.statement, said=own.statement)


def _of_agent(item: _Item, sent: SentTurn, part: Sentence, project: str | None) -> Candidate:
    if item.category not in _AGENTS or any(standing_rule(clause) for clause in _CLAUSE.split(part.text)):
        raise _Dropped("a rule in words that are not the user's")
    own = " ".join(part.text.strip(" *").split())
    grounded = _is_grounded(item.statement, sent.turn.text, own)
    return Candidate(
        category=item.category,
        statement=item.statement if grounded else own,
        reason=item.reason or "found by a model",
        role="assistant",
        records=(sent.turn.record,),
        excerpt=part.text,
        session=sent.turn.session,
        project=project,
        scope="project" if sent.turn.cwd else "personal",
        typed=False,
        score=MODEL_SCORE,
        said=own if grounded else None,
        said_at=moment(sent.turn.timestamp),
    )


def _is_grounded(statement: str, source: str, sentence: str) -> bool:
    """Whether a reworded statement says only what was said, and not its opposite."""
    if len(statement.split()) < LEAST_QUOTE_WORDS or len(statement) > MAX_STATEMENT_CHARS:
        return False
    lowered = source.lower()
    if any(token not in lowered for token in wording_of(statement).telling):
        return False
    words = content_words(statement)
    if not words or len(words & content_words(source)) < LEAST_GROUNDED * len(words):
        return False
    said, put = wording_of(source), wording_of(statement)
    against = relation(put, wording_of(sentence), None) is Relation.CONTRADICTS
    return bool(put.refused) <= bool(said.refused) and not against


def merge_candidates(local: Sequence[Candidate], modelled: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Join both miners' candidates without doubles: the local miner's, in the model's words where both have it."""
    result = list(local)
    for candidate in modelled:
        place = next((index for index, known in enumerate(result) if _is_double(candidate, known)), None)
        if place is None:
            result.append(candidate)
        elif not result[place].standing_rule and result[place].said is None and candidate.said is not None:
            known = result[place]
            result[place] = replace(
                known,
                statement=candidate.statement,
                said=known.statement,
                claimed_rule=known.category in _RULES and (known.claimed_rule or candidate.claimed_rule),
            )
    return tuple(result)


def _is_double(candidate: Candidate, known: Candidate) -> bool:
    if not set(candidate.records) & set(known.records) or candidate.role != known.role:
        return False
    if candidate.identity == known.identity:
        return True
    mine, other = content_words(own_words(candidate.identity)), content_words(own_words(known.identity))
    shared = len(mine & other) / max(1, min(len(mine), len(other)))
    return shared >= LEAST_OVERLAP
