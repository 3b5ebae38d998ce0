"""Analyse a question: its significant words, their weights, and the keyword expression. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..hooks.search import content_words
from ..runtime.function_words import is_significant as is_significant
from ..runtime.index_terms import cut_terms, plain_letters, without_chance_pairs
from .stemming import stem

if TYPE_CHECKING:
    from .vocabulary import IndexVocabulary

SCORED_PASSAGES = 8_000
"""Most passages for which BM25 is computed, 300 in a millisecond. In a large index the common words of a question are
in most passages: there a passage must have one of the rarer words, as many of them as occur in no more than this many
passages together."""
MAX_WORDS = 24
"""Most words of a question that are searched: the rarest ones, since a pasted page has hundreds."""
DENSE_CHARACTERS = 1200
"""Longest text that is embedded whole. A model reads about 256 word pieces; of a longer prompt the beginning and the
end are embedded."""

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
# It begins where a run of letters and digits begins: tried at each of a long run's characters, it takes
# minutes over a pasted blob.
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]+(?:[_./:\\-][A-Za-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]+"
    r"|[A-Za-z]+\d+[A-Za-z0-9]*|[A-Z][A-Z0-9]{4,}(?![A-Za-z0-9]))"
)
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


MAX_QUESTION_CHARACTERS = 200


@dataclass(frozen=True)
class Term:
    """One significant word of a prompt."""

    word: str
    """Lower case."""
    stem: str
    weight: float
    """Share of the prompt, by rarity in the vault; the weights of a prompt sum to 1."""
    corrections: tuple[str, ...] = ()
    """Stems of the vault that this word may be a misspelling of; empty for a word that the vault has."""


@dataclass(frozen=True)
class QueryAnalysis:
    """The words and expressions that a prompt is searched by."""

    text: str
    terms: tuple[Term, ...]
    identifiers: tuple[str, ...]
    """snake_case, camelCase, paths, versions, error codes: as written."""
    fts_match: str | None
    """FTS5 expression over all columns; None for a prompt without significant words."""
    dense_text: str
    """The text that is embedded."""

    @cached_property
    def is_question(self) -> bool:
        """Whether the prompt is short and ends in a question mark."""
        return len(self.text) <= MAX_QUESTION_CHARACTERS and self.text.rstrip().endswith(("?", "？"))

    @cached_property
    def is_one_word(self) -> bool:
        """Whether the prompt is a single word that is no identifier."""
        return not self.identifiers and sum(1 for _ in word_spans(self.text)) == 1

    @property
    def words(self) -> tuple[str, ...]:
        """Significant words, lower case, each once, in order."""
        return tuple(term.word for term in self.terms)


def word_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, word in lower case) of every run of letters and digits; for one in Chinese, Japanese or Korean
    those of its terms, which overlap (runtime/index_terms.py)."""
    for match in _WORD.finditer(text):
        run, at = match.group(), match.start()
        yield from ((at + start, at + end, run[start:end].lower()) for start, end in cut_terms(run))


def analyse(text: str) -> QueryAnalysis:
    """Analyse a prompt; all words weigh the same until `refine`. Accepts any text."""
    # Half of a surrogate pair, as of an emoji that was cut in two: tokenizers reject it.
    text = plain_letters(text.encode("utf-8", "replace").decode("utf-8"))
    words = content_words(text)
    identifiers = tuple(dict.fromkeys(_IDENTIFIER.findall(text)))
    terms = tuple(Term(word, stem(word), 1 / len(words)) for word in words)
    expression = " OR ".join(_match_units(terms, identifiers)) or None
    return QueryAnalysis(text, terms, identifiers, expression, _dense_text(text))


def refine(query: QueryAnalysis, vocabulary: IndexVocabulary) -> QueryAnalysis:
    """Weight each word by its rarity, keep the MAX_WORDS rarest, and correct the spelling of unknown ones."""
    query_stems = list(dict.fromkeys(term.stem for term in query.terms))
    if not query_stems:
        return query
    known = vocabulary.document_frequencies(query_stems)
    total = vocabulary.chunk_count
    rarity = {name: inverse_document_frequency(known.get(name, 0), total) for name in query_stems}
    words = set(without_chance_pairs(query.words, lambda word: bool(known.get(stem(word)))))
    # A word twice in two forms ("deploy", "deploys") counts once.
    kept: dict[str, Term] = {}
    for term in query.terms:
        if term.word in words:
            kept.setdefault(term.stem, term)
    rarest = sorted(kept.values(), key=lambda term: -rarity[term.stem])[:MAX_WORDS]
    chosen = {term.stem for term in rarest}
    mass = sum(rarity[term.stem] for term in rarest)
    terms = tuple(
        replace(
            term,
            weight=rarity[term.stem] / mass,
            corrections=() if known.get(term.stem) else _spelling_corrections(term, vocabulary),
        )
        for term in kept.values()
        if term.stem in chosen
    )
    identifiers = query.identifiers[:MAX_WORDS]
    units = _match_units(terms, identifiers)
    match = " OR ".join(units) or None
    if total > SCORED_PASSAGES:
        unit_stems = {name for names in units.values() for name in names}
        known = {**known, **vocabulary.document_frequencies(sorted(unit_stems - known.keys()))}
        match = _prune_match(units, known)
    return replace(query, terms=terms, fts_match=match)


def inverse_document_frequency(count: int, total: int) -> float:
    """Return the rarity of a term that occurs in `count` of `total` chunks: above 0, highest for one that occurs
    nowhere."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def max_edits(word: str) -> int:
    """Return how many edits a misspelling of this word may have, 0 to 2."""
    if len(word) < 4 or any(character.isdigit() for character in word):
        return 0
    return 1 if len(word) < 8 else 2


def edit_distance(left: str, right: str, limit: int) -> int:
    """Return the Damerau-Levenshtein distance of adjacent swaps; `limit` + 1 when it is larger than `limit`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before_last: list[int] = []
    last = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and b == left[i - 2]:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before_last, last = last, row
    return min(last[-1], limit + 1)


def _spelling_corrections(term: Term, vocabulary: IndexVocabulary) -> tuple[str, ...]:
    """Return up to three nearest known terms, by the stem or the whole word (a misspelt word may be stemmed
    wrongly)."""
    edits = max_edits(term.word)
    if edits == 0:
        return ()
    distances: dict[str, int] = {}
    head, tails = term.stem[:2], (term.stem[-2:], term.word[-2:])
    letters = (set(term.stem), set(term.word))
    for candidate in vocabulary.spelling_candidates(term.stem):
        # One edit leaves the beginning or the end as it was, and changes at most two letters of the set:
        # that spares nearly all comparisons (4,000 candidates: 4 ms instead of 15).
        if candidate[:2] != head and not candidate.endswith(tails):
            continue
        if min(len(own ^ set(candidate)) for own in letters) > 2 * edits:
            continue
        distance = min(edit_distance(term.stem, candidate, edits), edit_distance(term.word, candidate, edits))
        if distance <= edits:
            distances[candidate] = distance
    nearest = min(distances.values(), default=0)
    return tuple(sorted(word for word, distance in distances.items() if distance == nearest))[:3]


def _match_units(terms: Iterable[Term], identifiers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the operands of the OR expression, each with its stems: words, identifiers as phrases, parts of
    camelCase."""
    parts: dict[str, tuple[str, ...]] = {}
    for term in terms:
        parts[_quote(term.word)] = (term.stem,)
        for word in term.corrections:
            parts[_quote(word)] = (word,)
    for identifier in identifiers:
        if not _IDENTIFIER.fullmatch(identifier):
            continue
        words = _WORD.findall(identifier)
        parts.setdefault(_quote(" ".join(words)), tuple(stem(word.lower()) for word in words))
        for part in [identifier.replace("_", ""), *_CAMEL.findall(identifier)]:  # config_loader is ConfigLoader
            if part.isalnum() and len(part) > 2 and is_significant(part.lower()):
                parts.setdefault(_quote(part.lower()), (stem(part.lower()),))
    return parts


def _prune_match(units: Mapping[str, Sequence[str]], known: Mapping[str, int]) -> str | None:
    """Join the units by OR, limited to passages that have one of the rarest; the others still add to the score."""
    # A phrase is in no more passages than the rarest of its words.
    count = {unit: min((known.get(name, 0) for name in names), default=0) for unit, names in units.items()}
    rare: list[str] = []
    passages = 0
    for unit in sorted(units, key=lambda unit: count[unit]):
        passages += count[unit]
        if passages > SCORED_PASSAGES and any(count[rare_unit] for rare_unit in rare):
            break
        rare.append(unit)
    every = " OR ".join(units)
    if len(rare) == len(units):
        return every or None
    return f"({' OR '.join(rare)}) AND ({every})"


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _dense_text(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= DENSE_CHARACTERS:
        return text
    half = DENSE_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]}"
