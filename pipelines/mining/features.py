"""Features of a message of the user for the classifier: cues, shape, and words as hashed n-grams.

N-grams are hashed (crc32), so that the weights hold no text of the messages they were trained on.
"""

from __future__ import annotations

import functools
import operator
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...vault.turn import Turn
from .sentence_scan import EXPLICIT_BITS, RULE_BITS, MessageScan, SentenceScan, cues_of
from .sentences import Sentence, looks_pasted, sentences
from .tokens import BUCKETS

NGRAM_VALUE = 0.4
"""Value of an n-gram's feature. A cue has 1, an n-gram less: there are many more, and each is less significant."""

STATES_RULE = "states a rule"
EXPLICITLY = "explicit "
"""Prefix of the feature of a sentence with an explicit form; the category follows."""

MAX_WORDS = 250
MAX_CUED_SENTENCES = 25

_LENGTHS = (2, 4, 7, 12, 20, 35, 60, 110, 200)

Features = Mapping[str, float]
"""Feature name -> value. A name "h:<bucket>" is a hashed n-gram, any other is spelled out."""

SURE = 1e-6
"""Margin in logits, larger than any rounding error of another order of addition."""

_BUCKET_NAMES = tuple(f"h:{bucket}" for bucket in range(BUCKETS))


class Gain(NamedTuple):
    """Logits that a cue adds to a head."""

    cue: str
    bit: int
    """Bit of the cue in `SentenceScan.may_show`."""
    behind: float
    """Most that it may add if only a later sentence shows it; not below 0."""
    anywhere: float
    """Most that it may add if any sentence shows it."""
    shown: float
    """Added if a later sentence shows it."""
    first: float
    """Added if the first sentence shows it."""


class Shape(NamedTuple):
    """Features of a message that need no reading of its words."""

    origin: str
    length: int
    """Index in `_LENGTHS` of its number of words."""
    sentences: int | None
    """Number of sentences; None: not counted."""
    asks: bool
    """Whether it ends with a question."""
    lower: bool
    """Whether it begins in lower case."""
    pasted: bool
    """Whether it contains a pasted passage."""

    @classmethod
    def of(cls, turn: Turn, first: str, last: str, words: int, sentences: int | None) -> Shape:
        """Shape of a message with the first sentence `first` and the last sentence `last`."""
        asks = "?" in last and last.rstrip(" )\"'😅").endswith("?")
        length = bisect_left(_LENGTHS, words + 1)  # the beginning counts as a word
        return cls(turn.origin.value, length, sentences, asks, first[:1].islower(), bool(turn.pasted))

    def features(self) -> Features:
        """Name the shape's features for the classifier."""
        found = {"bias": 1.0, f"origin:{self.origin}": 1.0, f"words:{self.length}": 1.0}
        if self.sentences is not None:
            found[f"sentences:{self.sentences}"] = 1.0
        if self.asks:
            found["ends with a question"] = 1.0
        if self.lower:
            found["starts in lower case"] = 1.0
        if self.pasted:
            found["holds a pasted passage"] = 1.0
        return found


class Weighing(Protocol):
    """What a message uses of a head of the classifier; all values are logits."""

    @property
    def limit(self) -> float:
        """Least logit of a positive answer."""
        ...

    @property
    def gains(self) -> Sequence[Gain]:
        """Cues with a weight, the most significant first."""
        ...

    @property
    def cues(self) -> int:
        """Bits of the cues with a weight."""
        ...

    @property
    def most_by_look(self) -> float:
        """Most that the feature "looks pasted" may add."""
        ...

    @property
    def most_by_forms(self) -> float:
        """Most that the forms of sentences may add."""
        ...

    def most_by_cues(self, possible: int, in_first: int) -> float:
        """Most that cues with these bits may add if the first sentence may show those of `in_first`."""
        ...

    def most_by_ngrams(self, words: int) -> float:
        """Most that the n-grams of this number of words may add."""
        ...

    def of_shape(self, shape: Shape) -> float:
        """Sum of the weights of the shape."""
        ...

    def of_ngrams(self, buckets: Iterable[int]) -> float:
        """Sum of the weights of n-grams in these buckets."""
        ...

    def logit(self, features: Features, buckets: Iterable[int] = ()) -> float:
        """Sum of the weights of these features, and of n-grams in these buckets."""
        ...

    def probability(self, features: Features, buckets: Iterable[int] = ()) -> float:
        """Probability of a positive answer."""
        ...


class Message:
    """A message of the user, split into sentences. All else is computed on demand."""

    def __init__(self, turn: Turn, parts: Sequence[Sentence]) -> None:
        self.turn = turn
        self.sentences = parts
        self.own = [part for part in parts if part.typed]
        """The sentences that the user typed, the only ones that the classifier uses."""
        self._scan = MessageScan([part.text for part in self.own])
        self.may_show = self._scan.may_show
        """Bits of all patterns that may match any of them."""
        self._scans: Sequence[SentenceScan] | None = None
        self._buckets: set[int] | None = None
        first, last = (self.own[0].text, self.own[-1].text) if self.own else ("", "")
        self._shape = Shape.of(turn, first, last, self._scan.words, min(len(self.own), 6))

    # The next two are needed of nearly every message, and `cached_property` takes longer: it locks.

    @property
    def scans(self) -> Sequence[SentenceScan]:
        """Scans of the first MAX_CUED_SENTENCES of its own sentences."""
        if self._scans is None:
            self._scans = [self._scan.sentence(place) for place in range(min(len(self.own), MAX_CUED_SENTENCES))]
        return self._scans

    @property
    def _ngrams(self) -> set[int]:
        if self._buckets is None:
            self._buckets = self._scan.ngrams(MAX_WORDS)
        return self._buckets

    @functools.cached_property
    def features(self) -> Features:
        """All features."""
        return {**self._few, **named_ngrams(self._ngrams)}

    @functools.cached_property
    def _few(self) -> Features:
        """All features but the n-grams."""
        found = {**self._shape.features(), **named_cues(self.scans)}
        if looks_pasted(self.turn.text):
            found["looks pasted"] = 1.0
        found.update(self._forms)
        return found

    @functools.cached_property
    def _forms(self) -> Features:
        if not self.may_show & (RULE_BITS | EXPLICIT_BITS):
            return {}
        return _forms(self.own, self.scans)

    def probability(self, head: Weighing) -> float:
        """`Head.probability` of `features`, without a name for each n-gram."""
        return head.probability(self._few, self._ngrams)

    def is_beyond(self, head: Weighing) -> bool:
        """Whether `head` cannot reach its threshold, whatever `features` will be.

        Searching for cues is most of the work, and the words alone decide on most messages. So the cheap tests come
        first, on all sentences together.
        """
        missing = head.limit - head.of_shape(self._shape) - head.most_by_look - SURE
        possible = self.may_show
        by_forms = head.most_by_forms if possible & (RULE_BITS | EXPLICIT_BITS) else 0.0
        left = by_forms + head.most_by_cues(possible, possible)
        if left + head.most_by_ngrams(min(self._scan.words, MAX_WORDS)) < missing:
            return True
        missing -= head.of_ngrams(self._ngrams)
        return left < missing or show_too_little(self.scans, head, missing - head.logit(self._forms))

    def without(self, taken: Container[int]) -> Message:
        """The same message without the sentences of these numbers."""
        return Message(self.turn, [part for index, part in enumerate(self.sentences) if index not in taken])

    def search(self, index: int) -> SentenceScan:
        """Scan of sentence number `index`, one of its `own`."""
        place = self._places[self.sentences[index].start]
        return self.scans[place] if place < MAX_CUED_SENTENCES else self._scan.sentence(place)

    def speaks_for(self, head: Weighing, index: int) -> float:
        """Logit that sentence number `index`, one of its `own`, alone contributes to `head`."""
        place = self._places[self.sentences[index].start]
        scan = self.search(index)
        named: dict[str, float] = dict.fromkeys(cues_of(scan, head.cues), 1.0)
        named.update(_forms((self.sentences[index],), (scan,)))
        return head.logit(named) + head.of_ngrams(self._scan.ngrams_of(place, MAX_WORDS))

    @functools.cached_property
    def _places(self) -> Mapping[int, int]:
        return {part.start: place for place, part in enumerate(self.own)}


def message(turn: Turn) -> Message:
    """Split a turn into sentences."""
    return Message(turn, sentences(turn))


def show_too_little(scans: Sequence[SentenceScan], head: Weighing, missing: float) -> bool:
    """Whether these sentences, each searched by itself, show cues of less than the `missing` logit.

    Cues are searched one after the other, only as long as the remaining ones could still reach it.
    """
    may_show = [sentence.may_show for sentence in scans]
    in_first, possible = (may_show[0] if may_show else 0), functools.reduce(operator.or_, may_show, 0)
    left = head.most_by_cues(possible, in_first)
    if left < missing:
        return True
    for cue, bit, behind, anywhere, shown, of_first in [gain for gain in head.gains if possible & gain[1]]:
        left -= anywhere if in_first & bit else behind
        for place, bits in enumerate(may_show):
            if bits & bit and scans[place].shows(cue):
                missing -= shown if place else of_first
                break
        if left < missing:
            return True
    return False


def named_cues(scans: Sequence[SentenceScan]) -> dict[str, float]:
    """Name the cues that sentences show, and those that the first one shows."""
    found: dict[str, float] = {}
    for place, sentence in enumerate(scans):
        for cue in cues_of(sentence):
            found[cue] = 1.0
            if place == 0:
                found[f"first {cue}"] = 1.0
    return found


def named_ngrams(buckets: Iterable[int]) -> dict[str, float]:
    """Name the n-grams in these buckets."""
    return dict.fromkeys([_BUCKET_NAMES[bucket] for bucket in buckets], NGRAM_VALUE)


def _forms(parts: Iterable[Sentence], scans: Iterable[SentenceScan]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part, sentence in zip(parts, scans, strict=False):
        if part.spoken and sentence.standing_rule is not None:
            found[STATES_RULE] = 1.0
        for form in sentence.explicit:
            found[EXPLICITLY + form.category] = 1.0
    return found
