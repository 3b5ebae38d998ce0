"""What the classifier sees of a message of the agent's: does it tell what was wrong, or what cured it?

It is asked for less than the user's are: its words one by one, its length, and the cues of fixes. Neighbouring words,
the cues of what users say and the number of sentences tell nothing more of it (docs/benchmarks.md), and agents say most
of what there is to read. So all its words are looked at first, and only what they leave open is cut into sentences.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...vault.turn import Turn
from .features import (
    MAX_CUED_SENTENCES,
    MAX_WORDS,
    SURE,
    Features,
    Shape,
    Weighing,
    named_cues,
    named_ngrams,
    show_too_little,
)
from .prose import Sentence, sentences, without_fenced
from .searched import AGENTS, Searched, cues_of
from .words import words_in


class AgentMessage:
    """A message of the agent's. What else there is to know than its words is found out when asked."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        text = without_fenced(turn.text)
        words = words_in(text)
        known = AGENTS.known
        of_words = [known[word] for word in {*words}]
        self.may_show = AGENTS.open_by([item[0] for item in of_words], text)
        """Bits of what its sentences may show together."""
        if len(words) > MAX_WORDS:
            of_words = [known[word] for word in {*words[:MAX_WORDS]}]
        self._buckets = {item[2] for item in of_words}
        self._shape = Shape.of(turn, text, text, len(words), None)

    @functools.cached_property
    def sentences(self) -> Sequence[Sentence]:
        """In order."""
        return sentences(self.turn)

    @functools.cached_property
    def _searched(self) -> Sequence[Searched]:
        """What is known of each of the first sentences."""
        return [Searched(part.text, AGENTS) for part in self.sentences[:MAX_CUED_SENTENCES]]

    @functools.cached_property
    def features(self) -> Features:
        """All features."""
        return {**self._few, **named_ngrams(self._buckets)}

    @functools.cached_property
    def _few(self) -> Features:
        """All but the words."""
        return {**self._shape.features(), **named_cues(self._searched)}

    def probability(self, head: Weighing) -> float:
        """`Head.probability` of `features`, without a name for each word."""
        return head.probability(self._few, self._buckets)

    def is_beyond(self, head: Weighing) -> bool:
        """Is `head` sure to say no, whatever `features` will hold? What costs little is asked first."""
        missing = head.limit - head.of_shape(self._shape) - head.of_ngrams(self._buckets) - SURE
        return head.most_by_cues(self.may_show, self.may_show) < missing or show_too_little(
            self._searched, head, missing
        )

    def search(self, index: int) -> Searched:
        """What is known of sentence number `index`."""
        return self._searched[index] if index < MAX_CUED_SENTENCES else Searched(self.sentences[index].text, AGENTS)

    def speaks_for(self, head: Weighing, index: int) -> float:
        """What sentence number `index` adds alone to what `head` says; as a logit."""
        words = words_in(self.sentences[index].text)[:MAX_WORDS]
        buckets = {AGENTS.known[word][2] for word in words}
        return head.logit(dict.fromkeys(cues_of(self.search(index), head.cues), 1.0)) + head.of_ngrams(buckets)
