"""What a prompt asks for: its significant words, what each is worth, and the keyword expression. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .stemming import stems

_STOP = (
    "a about after again ain all also am an and any are as at be because been before being but by "
    "can could couldn d did didn do does doesn doing don done for from get give go had has have having he "
    "her here hers him his how i if in into is isn it its just let like ll m me more most my no not "
    "now of off on once only or other our out over own please re s same she should shouldn so some such t tell "
    "than that the their them then there these they this those through to too under until up us ve "
    "very was wasn we were weren what when where which while who whom whose why will with won would wouldn you "
    "your yours"
)
STOP_WORDS = frozenset(_STOP.split())
_CHATTER = (
    "absolutely ack afternoon alright amazing anyway awesome bye cheers continue cool correct evening exactly "
    "excellent fine good goodbye great haha hello help hey hi hmm ideal indeed lgtm looks lol maybe morning nice "
    "night nope nvm ok okay oh oops perfect perhaps proceed ready really right see sorry sounds stop sure thank "
    "thanks thx wait welcome well wonderful wow yeah yep yes yup"
)
CHATTER = frozenset(_CHATTER.split())
"""A prompt of nothing else asks nothing."""

SCORED_PASSAGES = 8_000
"""BM25 is worked out for every passage that has one of the words, at 300 a millisecond. In a large index the
common words of a question are in most of it: there a passage must have one of its rarer ones, as many of them as
are in no more passages than this together."""
MAX_WORDS = 24
"""A pasted page has hundreds of words: the rarest say what it is about."""
DENSE_CHARACTERS = 1200
"""A model reads about 256 word pieces; of a longer prompt the beginning and the end are asked."""

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
# It begins where a run of letters and digits begins: tried at each of a long run's characters, it takes
# minutes over a pasted blob.
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]+(?:[_./:\\-][A-Za-z0-9]+)+|[a-z]+[A-Z][A-Za-z0-9]+"
    r"|[A-Za-z]+\d+[A-Za-z0-9]*|[A-Z][A-Z0-9]{4,}(?![A-Za-z0-9]))"
)
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True)
class Term:
    """One significant word of a prompt."""

    word: str
    """Lower case."""
    stem: str
    weight: float
    """Share of the prompt's meaning, by rarity in the vault; the weights of a prompt sum to 1."""
    respelt: tuple[str, ...] = ()
    """Stems that the vault has and this word may be a misspelling of."""


@dataclass(frozen=True)
class QueryAnalysis:
    """A prompt taken apart."""

    text: str
    terms: tuple[Term, ...]
    identifiers: tuple[str, ...]
    """snake_case, camelCase, paths, versions, error codes: as written."""
    fts_match: str | None
    """FTS5 expression over all columns; None when nothing significant was said."""
    dense_text: str

    @property
    def is_one_word(self) -> bool:
        """Nothing was said but one word, and that is no identifier."""
        return not self.identifiers and sum(1 for _ in word_spans(self.text)) == 1

    @property
    def words(self) -> tuple[str, ...]:
        """Significant words, lower case, each once, in order."""
        return tuple(term.word for term in self.terms)


class Vocabulary(Protocol):
    """What a prompt's words are held against: the terms of the keyword index."""

    @property
    def total(self) -> int:
        """Number of chunks."""
        ...

    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """In how many chunks each term occurs; a term that occurs nowhere may be left out."""
        ...

    def candidates(self, term: str) -> Iterable[str]:
        """Terms that `term` could be a misspelling of: at the least those with its first letter and
        nearly its length. They are compared one by one, so a few thousand at most."""
        ...


def word_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, word in lower case) of every run of letters and digits."""
    return ((m.start(), m.end(), m.group().lower()) for m in _WORD.finditer(text))


def is_significant(word: str) -> bool:
    """Not a stop word, and not a single letter."""
    return word not in STOP_WORDS and (len(word) > 1 or word.isdigit() or not word.isascii())


def analyse(text: str) -> QueryAnalysis:
    """Take a prompt apart; every word weighs the same until `refine`. Never raises on any text."""
    # Half of a surrogate pair, as of an emoji that was cut through: no tokenizer takes it.
    text = text.encode("utf-8", "replace").decode("utf-8")
    words = dict.fromkeys(word for _, _, word in word_spans(text) if is_significant(word))
    identifiers = tuple(dict.fromkeys(_IDENTIFIER.findall(text)))
    if all(word in CHATTER for word in words):
        words = {}
    terms = tuple(Term(word, _stem(word), 1 / len(words)) for word in words)
    return QueryAnalysis(text, terms, identifiers, _match(terms, identifiers), _dense_text(text))


def refine(query: QueryAnalysis, vocabulary: Vocabulary, scored_passages: int = SCORED_PASSAGES) -> QueryAnalysis:
    """Weigh each word by its rarity, keep the rarest, and respell those that the vault has not.

    `scored_passages`: in a larger index a passage must have one of the rarer words, as many of them as are in no
    more passages together than this.
    """
    stems_asked = list(dict.fromkeys(term.stem for term in query.terms))
    if not stems_asked:
        return query
    known = vocabulary.frequencies(stems_asked)
    total = vocabulary.total
    rarity = {stem: inverse_frequency(known.get(stem, 0), total) for stem in stems_asked}
    # A word twice in two forms ("deploy", "deploys") counts once.
    kept: dict[str, Term] = {}
    for term in query.terms:
        kept.setdefault(term.stem, term)
    rarest = sorted(kept.values(), key=lambda term: -rarity[term.stem])[:MAX_WORDS]
    chosen = {term.stem for term in rarest}
    mass = sum(rarity[term.stem] for term in rarest)
    terms = tuple(
        replace(
            term,
            weight=rarity[term.stem] / mass,
            respelt=() if known.get(term.stem) else _respelt(term, vocabulary),
        )
        for term in kept.values()
        if term.stem in chosen
    )
    identifiers = query.identifiers[:MAX_WORDS]
    units = _units(terms, identifiers)
    match = " OR ".join(units) or None
    if total > scored_passages:
        asked = {stem for stems_of_unit in units.values() for stem in stems_of_unit}
        known = {**known, **vocabulary.frequencies(sorted(asked - known.keys()))}
        match = _pruned(units, known, scored_passages)
    return replace(query, terms=terms, fts_match=match)


def inverse_frequency(count: int, total: int) -> float:
    """Rarity of a term in `count` of `total` chunks: above 0, most for a term that is nowhere."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def allowed_edits(word: str) -> int:
    """How many slips a word of this length may have and still be recognised."""
    if len(word) < 4 or any(character.isdigit() for character in word):
        return 0
    return 1 if len(word) < 8 else 2


def edit_distance(left: str, right: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours; `limit` + 1 when more than that."""
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


def _respelt(term: Term, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The nearest known terms, by the stem or the whole word (a slip may spoil the stemming)."""
    edits = allowed_edits(term.word)
    if edits == 0:
        return ()
    found: dict[str, int] = {}
    head, tails = term.stem[:2], (term.stem[-2:], term.word[-2:])
    letters = (set(term.stem), set(term.word))
    for candidate in vocabulary.candidates(term.stem):
        # One slip leaves the beginning or the end as it was, and changes at most two letters of the set:
        # that spares nearly all comparisons (4,000 candidates: 4 ms instead of 15).
        if candidate[:2] != head and not candidate.endswith(tails):
            continue
        if min(len(own ^ set(candidate)) for own in letters) > 2 * edits:
            continue
        distance = min(edit_distance(term.stem, candidate, edits), edit_distance(term.word, candidate, edits))
        if distance <= edits:
            found[candidate] = distance
    nearest = min(found.values(), default=0)
    return tuple(sorted(word for word, distance in found.items() if distance == nearest))[:3]


def _match(terms: Iterable[Term], identifiers: Iterable[str]) -> str | None:
    return " OR ".join(_units(terms, identifiers)) or None


def _units(terms: Iterable[Term], identifiers: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What is OR-ed, with its stems: words, an identifier as the phrase it is, and camelCase by its parts."""
    parts: dict[str, tuple[str, ...]] = {}
    for term in terms:
        parts[_quoted(term.word)] = (term.stem,)
        for word in term.respelt:
            parts[_quoted(word)] = (word,)
    for identifier in identifiers:
        if not _IDENTIFIER.fullmatch(identifier):
            continue
        words = _WORD.findall(identifier)
        parts.setdefault(_quoted(" ".join(words)), tuple(_stem(word.lower()) for word in words))
        for part in _CAMEL.findall(identifier):
            if len(part) > 2 and is_significant(part.lower()):
                parts.setdefault(_quoted(part.lower()), (_stem(part.lower()),))
    return parts


def _pruned(units: Mapping[str, Sequence[str]], known: Mapping[str, int], scored_passages: int) -> str | None:
    """The units OR-ed, limited to the passages that have one of the rarest; the others still count where they occur."""
    # A phrase is in no more passages than the rarest of its words.
    count = {unit: min((known.get(stem, 0) for stem in found), default=0) for unit, found in units.items()}
    rare: list[str] = []
    passages = 0
    for unit in sorted(units, key=lambda unit: count[unit]):
        passages += count[unit]
        if passages > scored_passages and any(count[each] for each in rare):
            break
        rare.append(unit)
    every = " OR ".join(units)
    if len(rare) == len(units):
        return every or None
    return f"({' OR '.join(rare)}) AND ({every})"


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _stem(word: str) -> str:
    found = stems(word)
    return found[0] if found else word


def _dense_text(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= DENSE_CHARACTERS:
        return text
    half = DENSE_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]}"
