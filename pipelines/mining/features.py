"""What the classifier sees of a message of the user's: its cues, its shape, and its words as hashed n-grams.

N-grams are hashed (crc32), so that the weights hold no text of the messages they were trained on.
"""

from __future__ import annotations

import functools
import operator
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...vault.turn import Turn
from .prose import Sentence, looks_pasted, sentences
from .searched import EXPLICIT_BITS, RULE_BITS, Glance, Searched, cues_of
from .words import BUCKETS

NGRAM_VALUE = 0.4
"""A cue counts 1, an n-gram less: there are many more of them, and each knows less."""

STATES_RULE = "states a rule"
EXPLICITLY = "explicit "
"""Of a sentence that is something by its form: with its category."""

MAX_WORDS = 250
MAX_CUED_SENTENCES = 25

_LENGTHS = (2, 4, 7, 12, 20, 35, 60, 110, 200)

Features = Mapping[str, float]
"""Feature name -> value. A name "h:<bucket>" is a hashed n-gram, any other is spelled out."""

SURE = 1e-6
"""Logits; more than what is lost by adding up in another order."""

_BUCKET_NAMES = tuple(f"h:{bucket}" for bucket in range(BUCKETS))


class Gain(NamedTuple):
    """What a cue adds to a head's logit."""

    cue: str
    bit: int
    """Of the cue in `Searched.may_show`."""
    behind: float
    """The most it may add if only a later sentence shows it; not below 0."""
    anywhere: float
    """The most it may add if any sentence does."""
    shown: float
    """What it adds when a later sentence shows it."""
    first: float
    """What it adds when the first does."""


class Shape(NamedTuple):
    """What is known of a message without reading it."""

    origin: str
    length: int
    """Place in `_LENGTHS` of its number of words."""
    sentences: int | None
    """None: not counted."""
    asks: bool
    """Ends with a question."""
    lower: bool
    """Begins in lower case."""
    pasted: bool
    """Holds a pasted passage."""

    @classmethod
    def of(cls, turn: Turn, first: str, last: str, words: int, sentences: int | None) -> Shape:
        """Of a message that begins as `first` does and ends as `last` does."""
        asks = "?" in last and last.rstrip(" )\"'😅").endswith("?")
        length = bisect_left(_LENGTHS, words + 1)  # the beginning counts as a word
        return cls(turn.origin.value, length, sentences, asks, first[:1].islower(), bool(turn.pasted))

    def features(self) -> Features:
        """The same for the classifier."""
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
    """What a message needs of a head of the classifier; all in logits."""

    @property
    def limit(self) -> float:
        """From here on the answer is yes."""
        ...

    @property
    def gains(self) -> Sequence[Gain]:
        """Cues that count for something; what settles most comes first."""
        ...

    @property
    def cues(self) -> int:
        """The bits of the cues that count for something."""
        ...

    @property
    def most_by_look(self) -> float:
        """The most that the look of a document may add."""
        ...

    @property
    def most_by_forms(self) -> float:
        """The most that what sentences are by their form may add."""
        ...

    def most_by_cues(self, possible: int, in_first: int) -> float:
        """The most that cues with these bits may add, where the first sentence may show those of `in_first`."""
        ...

    def most_by_ngrams(self, words: int) -> float:
        """The most that the n-grams of so many words may add."""
        ...

    def of_shape(self, shape: Shape) -> float:
        """What the shape adds."""
        ...

    def of_ngrams(self, buckets: Iterable[int]) -> float:
        """What n-grams in these buckets add."""
        ...

    def logit(self, features: Features, buckets: Iterable[int] = ()) -> float:
        """The sum over these features, and n-grams in these buckets."""
        ...

    def probability(self, features: Features, buckets: Iterable[int] = ()) -> float:
        """That the answer is yes."""
        ...


class Message:
    """A message of the user's, cut into sentences. What else there is to know is found out when asked."""

    def __init__(self, turn: Turn, parts: Sequence[Sentence]) -> None:
        self.turn = turn
        self.sentences = parts
        self.own = [part for part in parts if part.typed]
        """The sentences that are the user's own: the classifier looks at no others."""
        self._glance = Glance([part.text for part in self.own])
        self.may_show = self._glance.may_show
        """Bits of what they may show together."""
        self._searched: Sequence[Searched] | None = None
        self._buckets: set[int] | None = None
        first, last = (self.own[0].text, self.own[-1].text) if self.own else ("", "")
        self._shape = Shape.of(turn, first, last, self._glance.words, min(len(self.own), 6))

    # Of the next two nearly every message is asked, and `cached_property` takes longer for it: it locks.

    @property
    def searched(self) -> Sequence[Searched]:
        """What is known of each of the first of its own sentences."""
        if self._searched is None:
            self._searched = [self._glance.searched(place) for place in range(min(len(self.own), MAX_CUED_SENTENCES))]
        return self._searched

    @property
    def _ngrams(self) -> set[int]:
        if self._buckets is None:
            self._buckets = self._glance.ngrams(MAX_WORDS)
        return self._buckets

    @functools.cached_property
    def features(self) -> Features:
        """All features."""
        return {**self._few, **named_ngrams(self._ngrams)}

    @functools.cached_property
    def _few(self) -> Features:
        """All but the n-grams."""
        found = {**self._shape.features(), **named_cues(self.searched)}
        if looks_pasted(self.turn.text):
            found["looks pasted"] = 1.0
        found.update(self._forms)
        return found

    @functools.cached_property
    def _forms(self) -> Features:
        if not self.may_show & (RULE_BITS | EXPLICIT_BITS):
            return {}
        return _forms(self.own, self.searched)

    def probability(self, head: Weighing) -> float:
        """`Head.probability` of `features`, without a name for each n-gram."""
        return head.probability(self._few, self._ngrams)

    def is_beyond(self, head: Weighing) -> bool:
        """Is `head` sure to say no, whatever `features` will hold?

        To look for cues is most of the work, and most messages are told by their words alone. So what costs little is
        asked first, of all sentences together.
        """
        missing = head.limit - head.of_shape(self._shape) - head.most_by_look - SURE
        possible = self.may_show
        by_forms = head.most_by_forms if possible & (RULE_BITS | EXPLICIT_BITS) else 0.0
        left = by_forms + head.most_by_cues(possible, possible)
        if left + head.most_by_ngrams(min(self._glance.words, MAX_WORDS)) < missing:
            return True
        missing -= head.of_ngrams(self._ngrams)
        return left < missing or show_too_little(self.searched, head, missing - head.logit(self._forms))

    def search(self, index: int) -> Searched:
        """What is known of sentence number `index`, one of its `own`."""
        place = self._places[self.sentences[index].start]
        return self.searched[place] if place < MAX_CUED_SENTENCES else self._glance.searched(place)

    def speaks_for(self, head: Weighing, index: int) -> float:
        """What sentence number `index`, one of its `own`, adds alone to what `head` says; as a logit."""
        place = self._places[self.sentences[index].start]
        searched = self.search(index)
        named: dict[str, float] = dict.fromkeys(cues_of(searched, head.cues), 1.0)
        named.update(_forms((self.sentences[index],), (searched,)))
        return head.logit(named) + head.of_ngrams(self._glance.ngrams_of(place, MAX_WORDS))

    @functools.cached_property
    def _places(self) -> Mapping[int, int]:
        return {part.start: place for place, part in enumerate(self.own)}


def message(turn: Turn) -> Message:
    """The turn as a message."""
    return Message(turn, sentences(turn))


def show_too_little(looked_at: Sequence[Searched], head: Weighing, missing: float) -> bool:
    """Do these sentences, each looked at for itself, show less than what is `missing`?

    Cues are looked for one after the other, and only for as long as those that are left could still make up for it.
    """
    may_show = [sentence.may_show for sentence in looked_at]
    in_first, possible = (may_show[0] if may_show else 0), functools.reduce(operator.or_, may_show, 0)
    left = head.most_by_cues(possible, in_first)
    if left < missing:
        return True
    for cue, bit, behind, anywhere, shown, of_first in [gain for gain in head.gains if possible & gain[1]]:
        left -= anywhere if in_first & bit else behind
        for place, bits in enumerate(may_show):
            if bits & bit and looked_at[place].shows(cue):
                missing -= shown if place else of_first
                break
        if left < missing:
            return True
    return False


def named_cues(looked_at: Sequence[Searched]) -> dict[str, float]:
    """The cues that sentences show, and those of the first of them."""
    found: dict[str, float] = {}
    for place, sentence in enumerate(looked_at):
        for cue in cues_of(sentence):
            found[cue] = 1.0
            if place == 0:
                found[f"first {cue}"] = 1.0
    return found


def named_ngrams(buckets: Iterable[int]) -> dict[str, float]:
    """N-grams under their names."""
    return dict.fromkeys([_BUCKET_NAMES[bucket] for bucket in buckets], NGRAM_VALUE)


def _forms(parts: Iterable[Sentence], searched: Iterable[Searched]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part, sentence in zip(parts, searched, strict=False):
        if part.spoken and sentence.standing_rule is not None:
            found[STATES_RULE] = 1.0
        for form in sentence.explicit:
            found[EXPLICITLY + form.category] = 1.0
    return found
