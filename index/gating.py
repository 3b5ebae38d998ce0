"""Ask the gate (vault/gate.py) which of the best entries of a ranking a prompt needs. Pure."""

from __future__ import annotations

import json
import math
import operator
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ..vault import gate
from .query import QueryAnalysis, is_significant
from .ranking import LOW_OVERLAP, DenseHit, ScoredEntry, WordEvidence, background_similarity, words_score
from .stemming import stems

GATED_ENTRIES = 20
"""Number of best-ranked entries, notes and skills together, that the gate decides on; the others are left out."""
ONE_WORD_PENALTY = 6.0
"""Log-odds subtracted for a prompt of a single word that is no identifier, compared with one of a single term."""
ASKS_FILE = Path(__file__).with_name("asks.json")
"""Weights that tell by its vector whether a prompt needs any entry: written by training/gate/fit.py."""
MAX_ASKS = 1.5
MAX_SKILLS = 1
"""Most skills among a prompt's entries: the vault is for notes, and hosts list skills themselves."""


@dataclass(frozen=True)
class Surroundings:
    """What a pair's features depend on besides its prompt and its entry."""

    rivals: int
    """Entries that could be given: notes or skills, where these are ranked separately."""
    terms: Sequence[tuple[Sequence[str], float]]
    """The prompt's words, as `gate.word_features` takes them."""
    dense: Sequence[DenseHit]
    """All hits of the dense retriever of entries of the same kind; empty where it gave nothing."""
    asks: float = 0.0
    """As `asks` returns."""

    @cached_property
    def similarities(self) -> Sequence[float]:
        """That of each entry's best chunk, ascending."""
        best: dict[int, float] = {}
        for hit in self.dense:
            best[hit.entry_rowid] = max(hit.similarity, best.get(hit.entry_rowid, -1.0))
        return sorted(best.values())

    @cached_property
    def background(self) -> float:
        """The similarity of an entry that has nothing to do with the prompt."""
        return background_similarity(self.similarities)


def features(
    query: QueryAnalysis,
    scored: ScoredEntry,
    text: str,
    words: WordEvidence | None,
    note: Mapping[str, float],
    around: Surroundings,
) -> dict[str, float]:
    """Return the gate's features of a prompt and an entry with its best chunk.

    `text`: the chunk with title and tags. `words`: the evidence of word vectors; None if there are none. `note`: the
    result of `gate.note_features`.
    """
    passage = {stem for stem in stems(text) if is_significant(stem)}
    by_words = {**gate.word_features(around.terms, passage, around.rivals), **note}
    by_words["exact"] = gate.exact(by_words, is_one_word=query.is_one_word)
    if scored.dense is None or words is None:
        return by_words
    above_background = scored.dense - around.background
    # A statement without a confidence was saved by a person, who meant it. By words alone this would let too many
    # chance likenesses pass (docs/benchmarks/languages.md).
    said = {"said_high": 1.0} if note and not any(name.startswith("said_") for name in note) else {}
    return {
        **by_words,
        **said,
        "cosine": scored.dense,
        "above_background": above_background,
        "nearer": math.log1p(len(around.similarities) - bisect_right(around.similarities, scored.dense)),
        "words": words_score(words),
        "related": words.related,
        "answers": answers(
            scored.dense, above_background, words_score(words), by_words["one_term"] * (not query.identifiers)
        )
        - ONE_WORD_PENALTY * query.is_one_word,
        "asks": around.asks,
    }


def answers(cosine: float, above_background: float, words: float, one_term: float) -> float:
    """Return the log-odds that a passage answers a question: a logistic regression fitted on vaults of notes
    (docs/adr/0009)."""
    return 11.0 * cosine + 10.5 * above_background + 9.0 * words - 3.0 * one_term - 7.5


@cache
def _asks_model() -> tuple[str, float, Sequence[float]]:
    data = json.loads(ASKS_FILE.read_text(encoding="utf-8"))
    return data["model"], data["offset"], data["direction"]


def asks(model: str, vector: bytes) -> float:
    """Return how much more than other prompts a prompt with this vector (float32, little-endian) needs any entry, in
    log-odds.

    Return 0 for a vector of another model than the one on which this was trained.
    """
    trained, offset, direction = _asks_model()
    if model != trained or len(vector) != 4 * len(direction):
        return 0.0
    values = struct.unpack(f"<{len(direction)}f", vector)
    found: float = offset + sum(map(operator.mul, values, direction))
    return max(-MAX_ASKS, min(MAX_ASKS, found))


def log_odds(pair: Mapping[str, float]) -> float:
    """Return the log-odds that the prompt needs the entry, from the features that are present."""
    return gate.log_odds(gate.BY_MEANING if "cosine" in pair else gate.BY_WORDS, pair)


def threshold(eagerness: str, *, by_meaning: bool) -> float:
    """Return the log-odds that an entry must reach for a value of the setting `recall.eagerness`."""
    return gate.threshold(gate.BY_MEANING if by_meaning else gate.BY_WORDS, eagerness)


def needed(gated: Sequence[ScoredEntry], eagerness: str, lenience: float = 0.0) -> list[ScoredEntry]:
    """Return the entries that reach the threshold, are at most `lenience` below it, or surely answer a question, in
    order.

    A skill must also have more than a low overlap with the prompt, since its description has the words of the prompts
    it is for. Only the first skill passes.
    """
    limits = {by: threshold(eagerness, by_meaning=by) - lenience for by in (True, False)}
    passed = [row for row in gated if row.is_answer or row.log_odds >= limits[row.dense is not None]]
    skills = [row.entry_rowid for row in passed if row.is_skill and row.coverage > LOW_OVERLAP][:MAX_SKILLS]
    return [row for row in passed if not row.is_skill or row.entry_rowid in skills]
