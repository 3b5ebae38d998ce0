"""Fusion of the two arms, and the floor under which nothing is shown. Pure.

What each arm says of a chunk is weighed by how much it says about this question:

- Words of the question that the chunk has count by their rarity, and by how alike the word is *meant*
  (its vector in its context, not its spelling). They count in full only when the rest of the question
  is met too; words shared by chance come without it.
- Words that the chunk has not count by their nearest relative in it.
- The likeness of question and chunk as a whole is added, and counts for more the more the nearest chunk stands out from
  those around it: between turns of one conversation all are about as near, between notes on many things few are.
- Words can mislead all the same: when several notes echo a question, they are all ahead of the one that answers it in
  other words. So the five that a prompt gets are not all chosen by one measure: behind the first come some that answer
  best by meaning among the entries that hardly share a word with the question; more of them where the first entry has
  nearly all of the words already.
- Skills are no notes: each of the two is ranked among its own, and a prompt gets a skill only for its own sake.

The constants were chosen on two conversations of LoCoMo, devbench, two vaults of notes with misleading neighbours
and halves of two others; figures on these (docs/benchmarks.md) are in-sample. The rules for identifiers, for
misspelt words and for sentences with one significant word were corrected after looking at misses of the
regression vault, so its figures are not held out either. What is done with skills and in small vaults was chosen on
half of another set (docs/adr/0028).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from ..vault.entry import SKILL_KIND
from .query import QueryAnalysis
from .stemming import stems

# How the words' evidence is read.
SHARED_AT_LEAST = 0.5
"""What a shared word counts when nothing else of the question is met."""
SUPPORT_NONE, SUPPORT_FULL = 0.10, 0.30
"""Likeness of the unmet words to their nearest word: of two texts that have nothing to do with each
other, and of a text that answers the question."""
WORDS_SHARE, DENSE_SHARE = 0.75, 0.25
STANDS_OUT, DENSE_SHARE_MORE = 0.5, 2.0
"""The nearest chunk stands out if half of its likeness is its own, not that of what lies around it; for what is its own
beyond that half, the vectors count so much more."""
FIRST_BY_SCORE, THEN_BY_MEANING = 3, 2
"""Places: a prompt gets five entries."""
HARDLY_SHARED = 0.25
"""Of the question, by weight: an entry with more of its words in any passage had its chance by them."""
FEW_TERMS = 2
"""A name and a word beside it: several notes may answer, all of them by that name, and no place is kept for others."""
NEARLY_ALL_SHARED = 0.8
FIRST_WHEN_ALL_SHARED, THEN_WHEN_ALL_SHARED = 2, 4
"""The places where the first entry has so much of the question, and the nearest stands out: if that is not the answer,
the words have led astray, and another entry with the same words is no better."""

# The floor: a logistic model of "this prompt is answered here".
FLOOR_DENSE, FLOOR_MARGIN, FLOOR_WORDS, FLOOR_ONE_WORD, FLOOR_BIAS = 11.0, 10.5, 9.0, -9.0, -7.5
FLOOR_ONE_TERM = -3.0
"""Of the likeness as a whole, of its margin over what lies around, of the words, for a prompt of one word
that is no identifier, and for nothing at all; for a sentence with one significant word."""
AROUND, UNRELATED = 60, 0.08
"""Hits that the margin is measured against; in a small vault the missing ones, up to a third, are taken
to be as alike as texts that have nothing to do with each other."""
KEYWORD_FLOOR = 0.5
"""Without the dense arm: the share of the question that a chunk must hold, by weight."""
ANSWERS_AMONG = 10
TAIL_SHARE, TAIL_ODDS = 0.6, 4.0
"""Beside a hit that answers, another is shown when its score is this share of the best one's, or its
own log-odds are no more than this below the floor: what says the same in other words scores less."""
FULL_TAIL_NOTES = 30
"""So much less is shown in a vault of fewer notes, in proportion: where few compete, the one that answers is first, and
what comes behind it is whatever else there is."""
SKILLS_SHOWN = 1
"""Of a prompt's places, at most: its notes are what the vault is for, and hosts list skills by themselves."""

# Weak priors: they order what is otherwise alike.
FRESHNESS_PRIOR, OCCURRENCE_PRIOR, ANCHOR_PRIOR = 0.01, 0.004, 1e-6
FRESHNESS_DAYS = 180.0
DUPLICATE_OVERLAP = 0.8


@dataclass(frozen=True)
class DenseHit:
    """A chunk and its cosine with the question, -1..1."""

    chunk_rowid: int
    entry_rowid: int
    similarity: float


@dataclass(frozen=True)
class KeywordHit:
    """A chunk and its BM25: positive, more is better (FTS5's bm25() negated)."""

    chunk_rowid: int
    entry_rowid: int
    bm25: float


@dataclass(frozen=True)
class WordEvidence:
    """What a chunk has for the words of a question; shares of the question by weight, 0..1."""

    same: float
    """Likeness of the words that both have, in their contexts."""
    related: float
    """Likeness of the other words to their nearest word in the chunk."""
    covered: float
    """Share of the question whose words the chunk has."""


@dataclass(frozen=True)
class EntryFacts:
    """What ranking wants to know of an entry besides its text."""

    path: str
    title: str
    project: str | None = None
    kind: str = ""
    updated: date | None = None
    occurrences: int = 1


@dataclass(frozen=True)
class Weights:
    """One half each is the tuned mixture. `floor` moves the floor: above 0 is stricter."""

    dense: float = 0.5
    keyword: float = 0.5
    floor: float = 0.0


@dataclass(frozen=True)
class Scored:
    """One entry with its best chunk. `dense` and `keyword` are None where that arm is silent."""

    entry_rowid: int
    chunk_rowid: int
    score: float
    dense: float | None
    keyword: float | None
    answers: float = 0.0
    """Log-odds that the prompt is answered here; below `Weights.floor` nothing should be shown."""
    covered: float = 0.0
    """Share of the question whose words the chunk has, as `WordEvidence.covered`."""
    skill: bool = False
    """It is judged as a skill: see `fuse_apart`."""


def fuse(
    query: QueryAnalysis,
    dense: Sequence[DenseHit],
    keyword: Sequence[KeywordHit],
    entries: Mapping[int, EntryFacts],
    weights: Weights,
    evidence: Mapping[int, WordEvidence] | None = None,
) -> list[Scored]:
    """Entries, best first; one row per entry, that of its best chunk. Nothing is cut: see `above_floor`.

    Best is by score, but for the places that are kept for what answers by meaning alone. `evidence` is by chunk; a
    chunk without any is judged by its BM25 among the others.
    """
    similarity = {hit.chunk_rowid: hit.similarity for hit in dense}
    bm25 = {hit.chunk_rowid: hit.bm25 for hit in keyword}
    owners = {hit.chunk_rowid: hit.entry_rowid for hit in dense}
    owners |= {hit.chunk_rowid: hit.entry_rowid for hit in keyword}
    found = evidence or {}
    most = max(bm25.values(), default=0.0)
    around = _around([hit.similarity for hit in dense])
    own_share = _own_share(max(similarity.values(), default=0.0), around)
    dense_share = _dense_share(query, own_share)
    newest = max((facts.updated for facts in entries.values() if facts.updated), default=None)
    best: dict[int, Scored] = {}
    shared: dict[int, float] = {}
    meaning: dict[int, float] = {}
    for chunk, entry in owners.items():
        if entry not in entries:
            continue
        cosine, words = similarity.get(chunk), found.get(chunk) or _guessed(bm25.get(chunk, 0.0), most)
        by_words = words_score(words)
        score = (
            2 * weights.keyword * WORDS_SHARE * by_words
            + 2 * weights.dense * dense_share * (cosine or 0.0)
            + _prior(entries[entry], newest)
        )
        if entry not in best or best[entry].score < score:
            answers = _answers(query, cosine, around, words.covered, by_words)
            best[entry] = Scored(entry, chunk, score, cosine, bm25.get(chunk), answers, words.covered)
        shared[entry] = max(words.covered, shared.get(entry, 0.0))
        if cosine is not None:
            meaning[entry] = max(words.related + cosine, meaning.get(entry, -1.0))
    ranked = sorted(best.values(), key=lambda row: (-row.score, entries[row.entry_rowid].path))
    if weights.dense <= 0 or len(query.terms) <= FEW_TERMS or not ranked:
        return ranked
    sideways = [row for row in ranked if row.entry_rowid in meaning and shared[row.entry_rowid] <= HARDLY_SHARED]
    sideways.sort(key=lambda row: -meaning[row.entry_rowid])
    if own_share >= STANDS_OUT and shared[ranked[0].entry_rowid] >= NEARLY_ALL_SHARED:
        return _with_places_for(sideways[:THEN_WHEN_ALL_SHARED], ranked, FIRST_WHEN_ALL_SHARED)
    return _with_places_for(sideways[:THEN_BY_MEANING], ranked, FIRST_BY_SCORE)


def _with_places_for(sideways: Sequence[Scored], ranked: Sequence[Scored], first_by_score: int) -> list[Scored]:
    """`ranked` with `sideways` behind its first ones, unless they are among those."""
    first = list(ranked[:first_by_score])
    ahead = {row.entry_rowid for row in first}
    first += [row for row in sideways if row.entry_rowid not in ahead]
    ahead |= {row.entry_rowid for row in sideways}
    return first + [row for row in ranked if row.entry_rowid not in ahead]


def _own_share(nearest: float, around: float) -> float:
    """How much of the nearest chunk's likeness is its own, 0..1: about 0.3 in a conversation, 0.8 among notes."""
    return min(max(0.0, 1.0 - around / nearest), 1.0) if nearest > 0 else 0.0


def _dense_share(query: QueryAnalysis, own_share: float) -> float:
    """What the likeness as a whole counts: more where the nearest stands out, less so for misspelt words (their
    vectors mean nothing)."""
    well_spelt = sum(term.weight for term in query.terms if not term.respelt)
    return DENSE_SHARE + DENSE_SHARE_MORE * max(0.0, own_share - STANDS_OUT) * well_spelt


def words_score(words: WordEvidence) -> float:
    """0 to about 1: shared words, discounted when the rest of the question is not met, and related ones."""
    unmet = 1.0 - words.covered
    support = words.related / unmet if unmet > 0.01 else SUPPORT_FULL
    met = min(max((support - SUPPORT_NONE) / (SUPPORT_FULL - SUPPORT_NONE), 0.0), 1.0)
    return words.same * (SHARED_AT_LEAST + (1 - SHARED_AT_LEAST) * met) + words.related


def fuse_apart(
    query: QueryAnalysis,
    dense: Sequence[DenseHit],
    keyword: Sequence[KeywordHit],
    entries: Mapping[int, EntryFacts],
    weights: Weights,
    evidence: Mapping[int, WordEvidence] | None = None,
) -> list[Scored]:
    """As `fuse`, notes and skills each among themselves; a skill stands before the first note that scores less.

    How far the best stands out is asked of what lies around it of its own kind: else the dozens of skills of a machine
    are what lies around the first notes of a vault, and take the places that are kept for meaning.
    """
    is_skill = {rowid: facts.kind.lower() == SKILL_KIND for rowid, facts in entries.items()}

    def of(kind: bool) -> list[Scored]:
        own = {rowid: facts for rowid, facts in entries.items() if is_skill[rowid] is kind}
        near = [hit for hit in dense if hit.entry_rowid in own]
        return fuse(query, near, [hit for hit in keyword if hit.entry_rowid in own], own, weights, evidence)

    skills = deque(replace(row, skill=True) for row in of(True))
    ranked: list[Scored] = []
    for note in of(False):
        while skills and skills[0].score > note.score:
            ranked.append(skills.popleft())
        ranked.append(note)
    return [*ranked, *skills]


def above_floor(ranked: Sequence[Scored], weights: Weights, notes: int = FULL_TAIL_NOTES) -> list[Scored]:
    """What of a ranking may be shown unasked: nothing when the prompt is not answered here.

    Injecting noise is a failure: the best hit must answer the prompt by the evidence of both arms,
    and what follows must be nearly as good, the more so the fewer `notes` there are. A skill is shown for its own sake
    alone: it must answer, and have more than a little of the prompt's words, since it says in the words of who asks
    when it is to be used.
    """
    shown = _answering([row for row in ranked if not row.skill], weights, min(1.0, notes / FULL_TAIL_NOTES))
    skills = [row for row in ranked if row.skill and row.answers >= weights.floor and row.covered > HARDLY_SHARED]
    kept = {row.entry_rowid for row in (*shown, *skills[:SKILLS_SHOWN])}
    return [row for row in ranked if row.entry_rowid in kept]


def _answering(ranked: Sequence[Scored], weights: Weights, tail: float) -> list[Scored]:
    """Nothing, or what answers, with `tail` (0..1) of what may come along."""
    if not ranked or max(row.answers for row in ranked[:ANSWERS_AMONG]) < weights.floor:
        return []
    least_score = (1 - tail * (1 - TAIL_SHARE)) * ranked[0].score
    least_odds = weights.floor - tail * TAIL_ODDS
    return [row for row in ranked if row.score >= least_score or row.answers >= least_odds]


def is_near_duplicate(left: str, right: str) -> bool:
    """The two texts share nearly all their words: shown together they say one thing twice."""
    first, second = set(stems(left)), set(stems(right))
    if not first or not second:
        return False
    return len(first & second) / len(first | second) >= DUPLICATE_OVERLAP


def _around(similarities: Sequence[float]) -> float:
    """The likeness of what lies around the best hits."""
    nearest = sorted(similarities, reverse=True)[:AROUND]
    nearest += [UNRELATED] * (AROUND // 3 - len(nearest))
    return sum(nearest) / len(nearest)


def answers_by_words(query: QueryAnalysis, covered: float) -> float:
    """Log-odds that an entry with this share of the question's words, by weight, answers it."""
    return 10 * (covered - KEYWORD_FLOOR) + _one_word(query)


def _answers(query: QueryAnalysis, cosine: float | None, around: float, covered: float, by_words: float) -> float:
    if cosine is None:
        return answers_by_words(query, covered)
    whole = FLOOR_DENSE * cosine + FLOOR_MARGIN * (cosine - around)
    return whole + FLOOR_WORDS * by_words + _one_word(query) + FLOOR_BIAS


def _one_word(query: QueryAnalysis) -> float:
    if len(query.terms) != 1 or query.identifiers:
        return 0.0
    return FLOOR_ONE_WORD if query.is_one_word else FLOOR_ONE_TERM


def _guessed(bm25: float, most: float) -> WordEvidence:
    """Without evidence of single words: BM25 against the best one's, as if that had all of the question."""
    share = bm25 / most if most > 0 else 0.0
    return WordEvidence(same=0.6 * share, related=0.0, covered=share)


def _prior(facts: EntryFacts, newest: date | None) -> float:
    """Fresh, often confirmed, and a folder's own note first, among what is otherwise alike."""
    prior = OCCURRENCE_PRIOR * math.log2(max(1, min(facts.occurrences, 64)))
    if facts.updated and newest:
        prior += FRESHNESS_PRIOR * math.exp(-max(0, (newest - facts.updated).days) / FRESHNESS_DAYS)
    if facts.path.rsplit("/", 1)[-1] == "_index.md":
        prior += ANCHOR_PRIOR
    return prior
