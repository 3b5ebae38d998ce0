"""Rank fusion of the keyword and the dense retriever. Pure. The gate (gating.py) decides which entries a prompt gets.

Each retriever's evidence for a chunk is weighted by how much it says about this question:

- Words of the question that the chunk has count by their rarity, and by how similar the word's *meaning* is (its
  vector in its context, not its spelling). They count in full only when the rest of the question is matched too:
  words that are shared by chance come without it.
- Words that the chunk lacks count by their most similar word in it.
- The cosine similarity of question and chunk is added, and counts for more the further the nearest chunk is above the
  background: turns of one conversation are all about equally near, notes on many subjects are not.
- Words can still mislead: when several notes repeat the words of a question, they all rank above the one that answers
  it in other words. So the five entries that a prompt gets are not all chosen by one score: behind the first ones,
  slots are reserved for the best semantic matches among the entries with a low word overlap, and more of them where
  the first entry already has nearly all of the words.
- Skills are not notes: each kind is ranked apart.

The constants were chosen on two conversations of LoCoMo, devbench, two vaults of notes with misleading neighbours
and halves of two others; figures on these (docs/benchmarks.md) are in-sample. The rules for identifiers, for
misspelt words and for sentences with one significant word were corrected after looking at misses of the
regression vault, so its figures are not held out either. The rules for skills and for small vaults were chosen on
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

# Word evidence.
MIN_SHARED_WORD_CREDIT = 0.5
"""Share of a shared word's similarity that counts when nothing else of the question is matched."""
UNRELATED_SUPPORT, ANSWER_SUPPORT = 0.10, 0.30
"""Mean similarity of the unmatched words to their nearest word: of two unrelated texts, and of a text that answers the
question."""
SAME_WORD_SIMILARITY = 0.6
"""Median similarity of a word's vector to that of the same word elsewhere: the evidence where no vectors are known."""

# The score of a chunk.
WORDS_WEIGHT, DENSE_WEIGHT = 0.75, 0.25
DISTINCT_MARGIN, DENSE_WEIGHT_PER_MARGIN = 0.5, 2.0
"""The nearest chunk is distinct from the background if at least half of its similarity exceeds it; what exceeds it
beyond that half adds this much to DENSE_WEIGHT."""

# The five entries that a prompt gets.
SCORE_SLOTS, SEMANTIC_SLOTS = 3, 2
LOW_OVERLAP = 0.25
"""Coverage up to which an entry may take a semantic slot: with more of the words it can compete by its score."""
FEW_TERMS = 2
"""Most terms of a question (a name and one more word) for which no slots are reserved: several notes may answer it."""
HIGH_OVERLAP = 0.8
SCORE_SLOTS_AT_HIGH_OVERLAP, SEMANTIC_SLOTS_AT_HIGH_OVERLAP = 2, 4
"""The slots where the first entry has so much of the question and the nearest chunk is distinct: if that entry is not
the answer, the words have misled, and another entry with the same words is no better."""

# The background.
BACKGROUND_HITS, UNRELATED_SIMILARITY = 60, 0.08
"""Hits whose mean similarity is the background. In a small vault missing hits, up to a third of them, count as texts
that have nothing to do with each other."""

# Weak priors: they order what is otherwise alike.
FRESHNESS_PRIOR, OCCURRENCE_PRIOR, PROJECT_PRIOR, ANCHOR_PRIOR = 0.01, 0.004, 0.02, 1e-6
FRESHNESS_DAYS = 180.0
DUPLICATE_OVERLAP = 0.8


@dataclass(frozen=True)
class DenseHit:
    """A chunk and its cosine similarity with the question, -1..1."""

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
    """How well a chunk matches the words of a question; shares of the question by weight, 0..1."""

    same: float
    """Similarity of the words that both have, in their contexts."""
    related: float
    """Similarity of the other words to their nearest word in the chunk."""
    coverage: float
    """Share of the question whose words the chunk has."""


@dataclass(frozen=True)
class EntryFacts:
    """The properties of an entry, besides its text, that ranking uses."""

    path: str
    kind: str = ""
    confidence: str = ""
    updated: date | None = None
    occurrences: int = 1
    is_local: bool = False
    """Whether it belongs to the project that was asked in."""


@dataclass(frozen=True)
class ScoredEntry:
    """One entry with its best chunk. `dense` and `keyword` are None where that retriever did not find the chunk."""

    entry_rowid: int
    chunk_rowid: int
    score: float
    dense: float | None
    keyword: float | None
    log_odds: float = 0.0
    """Log-odds that the prompt needs the entry, by the gate (gating.py); 0 for one that it was not asked about."""
    is_answer: bool = False
    """Whether the prompt is a question, and the chunk surely answers it (gate.surely)."""
    coverage: float = 0.0
    """As `WordEvidence.coverage`."""
    highest_coverage: float = 0.0
    """The highest of any chunk of the entry."""
    semantic: float | None = None
    """The highest sum of related words and cosine similarity of a chunk; None where no chunk has a similarity."""
    is_skill: bool = False
    """True when it was ranked among the skills: see `fuse_by_kind`."""


def fuse(
    query: QueryAnalysis,
    dense: Sequence[DenseHit],
    keyword: Sequence[KeywordHit],
    entries: Mapping[int, EntryFacts],
    evidence: Mapping[int, WordEvidence] | None = None,
) -> list[ScoredEntry]:
    """Rank entries by score, with some slots reserved for semantic matches. Cuts nothing: see gating.py.

    `evidence` is by chunk; a chunk without any is judged by its BM25 relative to the best. Hits of entries that are not
    in `entries` are dropped. Each entry occurs once.
    """
    ranked = score_entries(query, dense, keyword, entries, evidence)
    if len(query.terms) <= FEW_TERMS:
        return ranked
    return reserve_semantic_slots(ranked, nearest_margin([hit.similarity for hit in dense]))


def score_entries(
    query: QueryAnalysis,
    dense: Sequence[DenseHit],
    keyword: Sequence[KeywordHit],
    entries: Mapping[int, EntryFacts],
    evidence: Mapping[int, WordEvidence] | None = None,
) -> list[ScoredEntry]:
    """Score each entry by its best chunk; best first, ties by path. Parameters as in `fuse`."""
    similarity = {hit.chunk_rowid: hit.similarity for hit in dense}
    bm25 = {hit.chunk_rowid: hit.bm25 for hit in keyword}
    best_bm25 = max(bm25.values(), default=0.0)
    similarities = [hit.similarity for hit in dense]
    dense_weight = _dense_weight(query, nearest_margin(similarities))
    newest = max((facts.updated for facts in entries.values() if facts.updated), default=None)
    chunks: dict[int, dict[int, WordEvidence]] = {}
    owners = {hit.chunk_rowid: hit.entry_rowid for hit in dense}
    owners |= {hit.chunk_rowid: hit.entry_rowid for hit in keyword}
    for chunk, entry in owners.items():
        if entry in entries:
            words = (evidence or {}).get(chunk) or evidence_from_bm25(bm25.get(chunk, 0.0), best_bm25)
            chunks.setdefault(entry, {})[chunk] = words

    def score(chunk: int, words: WordEvidence, prior: float) -> float:
        return WORDS_WEIGHT * words_score(words) + dense_weight * similarity.get(chunk, 0.0) + prior

    ranked: list[ScoredEntry] = []
    for entry, by_chunk in chunks.items():
        prior = _prior(entries[entry], newest)
        scores = {chunk: score(chunk, words, prior) for chunk, words in by_chunk.items()}
        best = max(scores, key=lambda chunk: scores[chunk])
        semantic = [words.related + similarity[chunk] for chunk, words in by_chunk.items() if chunk in similarity]
        scored = ScoredEntry(
            entry,
            best,
            scores[best],
            similarity.get(best),
            bm25.get(best),
            coverage=by_chunk[best].coverage,
            highest_coverage=max(words.coverage for words in by_chunk.values()),
            semantic=max(semantic, default=None),
        )
        ranked.append(scored)
    return sorted(ranked, key=lambda scored: (-scored.score, entries[scored.entry_rowid].path))


def reserve_semantic_slots(ranked: Sequence[ScoredEntry], margin: float) -> list[ScoredEntry]:
    """Move the best semantic matches with low word overlap up, to follow the first entries by score.

    `ranked` is the result of `score_entries`; `margin` that of `nearest_margin`.
    """
    low_overlap = [
        (row.semantic, row) for row in ranked if row.semantic is not None and row.highest_coverage <= LOW_OVERLAP
    ]
    low_overlap.sort(key=lambda pair: -pair[0])
    by_score, semantic = SCORE_SLOTS, SEMANTIC_SLOTS
    if ranked and margin >= DISTINCT_MARGIN and ranked[0].highest_coverage >= HIGH_OVERLAP:
        by_score, semantic = SCORE_SLOTS_AT_HIGH_OVERLAP, SEMANTIC_SLOTS_AT_HIGH_OVERLAP
    # An entry that is among the first anyway keeps its place.
    ahead = {row.entry_rowid: row for row in [*ranked[:by_score], *(row for _, row in low_overlap[:semantic])]}
    return [*ahead.values(), *(row for row in ranked if row.entry_rowid not in ahead)]


def background_similarity(similarities: Sequence[float]) -> float:
    """Mean cosine similarity of the BACKGROUND_HITS nearest chunks."""
    nearest = sorted(similarities, reverse=True)[:BACKGROUND_HITS]
    nearest += [UNRELATED_SIMILARITY] * (BACKGROUND_HITS // 3 - len(nearest))
    return sum(nearest) / len(nearest)


def nearest_margin(similarities: Sequence[float]) -> float:
    """Share of the nearest chunk's similarity that exceeds the background, 0..1: about 0.3 in a conversation, 0.8 among
    notes."""
    nearest = max(similarities, default=0.0)
    return min(max(0.0, 1.0 - background_similarity(similarities) / nearest), 1.0) if nearest > 0 else 0.0


def _dense_weight(query: QueryAnalysis, margin: float) -> float:
    """Weight of the cosine similarity: grows with the margin, less so for misspelt words (their vectors mean
    nothing)."""
    well_spelt = sum(term.weight for term in query.terms if not term.corrections)
    return DENSE_WEIGHT + DENSE_WEIGHT_PER_MARGIN * max(0.0, margin - DISTINCT_MARGIN) * well_spelt


def words_score(words: WordEvidence) -> float:
    """Combine word evidence to one score, 0 to about 1: shared words, less if other words are unmatched, plus related
    words."""
    unmatched = 1.0 - words.coverage
    support = words.related / unmatched if unmatched > 0.01 else ANSWER_SUPPORT
    credit = min(max((support - UNRELATED_SUPPORT) / (ANSWER_SUPPORT - UNRELATED_SUPPORT), 0.0), 1.0)
    return words.same * (MIN_SHARED_WORD_CREDIT + (1 - MIN_SHARED_WORD_CREDIT) * credit) + words.related


def fuse_by_kind(
    query: QueryAnalysis,
    dense: Sequence[DenseHit],
    keyword: Sequence[KeywordHit],
    entries: Mapping[int, EntryFacts],
    evidence: Mapping[int, WordEvidence] | None = None,
) -> list[ScoredEntry]:
    """As `fuse`, with notes and skills ranked apart; a skill comes before the first note that scores less.

    Each kind has a background of its own: else the dozens of skills of a machine would be the background of the first
    notes of a vault, and would take the slots that are reserved for semantic matches.
    """
    is_skill = {rowid: facts.kind.lower() == SKILL_KIND for rowid, facts in entries.items()}

    def fuse_kind(skill: bool) -> list[ScoredEntry]:
        own = {rowid: facts for rowid, facts in entries.items() if is_skill[rowid] is skill}
        own_dense = [hit for hit in dense if hit.entry_rowid in own]
        own_keyword = [hit for hit in keyword if hit.entry_rowid in own]
        return fuse(query, own_dense, own_keyword, own, evidence)

    skills = deque(replace(row, is_skill=True) for row in fuse_kind(True))
    ranked: list[ScoredEntry] = []
    for note in fuse_kind(False):
        while skills and skills[0].score > note.score:
            ranked.append(skills.popleft())
        ranked.append(note)
    return [*ranked, *skills]


def is_near_duplicate(left: str, right: str) -> bool:
    """Whether the two texts share nearly all their words, so that only one of them should be shown."""
    first, second = set(stems(left)), set(stems(right))
    if not first or not second:
        return False
    return len(first & second) / len(first | second) >= DUPLICATE_OVERLAP


def evidence_from_bm25(bm25: float, best_bm25: float) -> WordEvidence:
    """Estimate word evidence from BM25 alone, as if the chunk with the best BM25 had all words of the question."""
    coverage = bm25 / best_bm25 if best_bm25 > 0 else 0.0
    return WordEvidence(same=SAME_WORD_SIMILARITY * coverage, related=0.0, coverage=coverage)


def _prior(facts: EntryFacts, newest: date | None) -> float:
    """Prefer fresh entries, often confirmed ones, this project's, and a folder's own note, of what is else alike."""
    prior = OCCURRENCE_PRIOR * math.log2(max(1, min(facts.occurrences, 64)))
    if facts.updated and newest:
        prior += FRESHNESS_PRIOR * math.exp(-max(0, (newest - facts.updated).days) / FRESHNESS_DAYS)
    if facts.is_local:
        prior += PROJECT_PRIOR
    if facts.path.rsplit("/", 1)[-1] == "_index.md":
        prior += ANCHOR_PRIOR
    return prior
