"""What the classifier sees of a message: its cues, its shape, and its words as hashed n-grams.

N-grams are hashed (crc32), so that the weights hold no text of the messages they were trained on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from ...vault.turn import Turn
from .cues import Searched, cues_of
from .forms import explicit
from .prose import Sentence, looks_pasted, sentences
from .rules import standing_rule
from .words import hashed_ngrams

BUCKETS = 4096
"""Hash buckets for n-grams. At some 10,000 distinct n-grams in training, collisions cost less than size does."""

NGRAM_VALUE = 0.4
"""A cue counts 1, an n-gram less: there are many more of them, and each knows less."""

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


class Weighing(Protocol):
    """What `Message.is_beyond` needs of a head of the classifier; all in logits."""

    @property
    def limit(self) -> float:
        """From here on the answer is yes."""
        ...

    @property
    def gains(self) -> Sequence[Gain]:
        """Cues that count for something; what settles most comes first."""
        ...

    @property
    def most_by_form(self) -> float:
        """The most that explicit forms, stated rules and the look of a document may add."""
        ...

    def of_ngrams(self, buckets: Iterable[int]) -> float:
        """What n-grams in these buckets add."""
        ...

    def logit(self, features: Features) -> float:
        """The sum over these features."""
        ...


@dataclass(frozen=True, eq=False)
class Message:
    """A message of the user or the agent, cut into sentences. What else there is to know is found out when asked."""

    turn: Turn
    sentences: tuple[Sentence, ...]

    @cached_property
    def own(self) -> Sequence[Sentence]:
        """The sentences that are the speaker's own: the classifier looks at no others."""
        return [part for part in self.sentences if part.typed] if self.turn.is_users_words else self.sentences

    @cached_property
    def features(self) -> Features:
        """All features."""
        found = {**self._shape, **_named(self._ngrams)}
        for index, sentence in enumerate(self._searched[:MAX_CUED_SENTENCES]):
            for cue in cues_of(sentence):
                found[cue] = 1.0
                if index == 0:
                    found[f"first {cue}"] = 1.0
        if looks_pasted(self.turn.text):
            found["looks pasted"] = 1.0
        found.update(_forms(self.own[:MAX_CUED_SENTENCES]))
        return found

    def is_beyond(self, head: Weighing) -> bool:
        """Is `head` sure to say no, whatever `features` will hold?

        To look for cues is most of the work of mining, and most messages are told by their words alone. So cues are
        looked for one after the other, and only for as long as those that are left could still make up a yes.
        """
        looked_at = self._searched[:MAX_CUED_SENTENCES]
        missing = head.limit - head.logit(self._shape) - head.of_ngrams(self._ngrams) - SURE
        in_first, possible = (looked_at[0].may_show if looked_at else 0), 0
        for sentence in looked_at:
            possible |= sentence.may_show
        left = head.most_by_form
        gains = [gain for gain in head.gains if possible & gain.bit]
        for gain in gains:
            left += gain.anywhere if in_first & gain.bit else gain.behind
        if left < missing:
            return True
        for cue, bit, behind, anywhere, shown, of_first in gains:
            left -= anywhere if in_first & bit else behind
            for sentence in looked_at:
                if sentence.may_show & bit and sentence.shows(cue):
                    missing -= of_first if sentence is looked_at[0] else shown
                    break
            if left < missing:
                return True
        return False

    def speaks_for(self, head: Weighing, index: int) -> float:
        """What sentence number `index`, one of its `own`, adds alone to what `head` says; as a logit."""
        part = self.sentences[index]
        searched = self._searched[self._places[part.start]]
        named: dict[str, float] = dict.fromkeys(cues_of(searched), 1.0)
        named.update(_forms((part,)))
        return head.logit(named) + head.of_ngrams(hashed_ngrams(searched.words[:MAX_WORDS], BUCKETS))

    @cached_property
    def _searched(self) -> list[Searched]:
        return [Searched(part.text) for part in self.own]

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {part.start: place for place, part in enumerate(self.own)}

    @cached_property
    def _ngrams(self) -> set[int]:
        words: list[str] = []
        for sentence in self._searched:
            words += sentence.words
            if len(words) > MAX_WORDS:
                break
        return hashed_ngrams(words[:MAX_WORDS], BUCKETS)

    @cached_property
    def _shape(self) -> Features:
        return _shape(self.turn, self.own, self._searched)


def message(turn: Turn) -> Message:
    """The turn as a message."""
    return Message(turn, sentences(turn))


def _shape(turn: Turn, parts: Sequence[Sentence], searched: Sequence[Searched]) -> dict[str, float]:
    """What is known of a message without reading it."""
    found: dict[str, float] = {"bias": 1.0, f"origin:{turn.origin}": 1.0}
    # One more than there are words: the beginning counts as one.
    length = 1 + sum(len(sentence.words) for sentence in searched)
    found[f"words:{bisect_left(_LENGTHS, length)}"] = 1.0
    found[f"sentences:{min(len(parts), 6)}"] = 1.0
    if parts:
        if parts[-1].text.rstrip(" )\"'😅").endswith("?"):
            found["ends with a question"] = 1.0
        if parts[0].text[:1].islower():
            found["starts in lower case"] = 1.0
    if turn.pasted:
        found["holds a pasted passage"] = 1.0
    return found


def _named(grams: Iterable[int]) -> dict[str, float]:
    return dict.fromkeys([_BUCKET_NAMES[bucket] for bucket in grams], NGRAM_VALUE)


def _forms(parts: Iterable[Sentence]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        if part.spoken and standing_rule(part.text) is not None:
            found["states a rule"] = 1.0
        for form in explicit(part.text):
            found[f"explicit {form.category}"] = 1.0
    return found
