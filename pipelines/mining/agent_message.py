"""Features of a message of the agent, by which the classifier decides whether it says what was wrong, or what cured it.

They are fewer than those of a user's message: its single words, its length, and the cues of fixes. Neighbouring words,
the cues of users' messages and the number of sentences add nothing (docs/benchmarks.md), and most of the text is the
agent's. So all words are tested first, and only what they leave undecided is split into sentences.
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
from .sentence_scan import AGENTS, SentenceScan, cues_of
from .sentences import Sentence, sentences, without_fenced
from .tokens import words_in


class AgentMessage:
    """A message of the agent. All but its words is computed on demand."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        text = without_fenced(turn.text)
        words = words_in(text)
        known = AGENTS.known
        of_words = [known[word] for word in {*words}]
        self.may_show = AGENTS.open_by([item[0] for item in of_words], text)
        """Bits of all patterns that may match any of its sentences."""
        if len(words) > MAX_WORDS:
            of_words = [known[word] for word in {*words[:MAX_WORDS]}]
        self._buckets = {item[2] for item in of_words}
        self._shape = Shape.of(turn, text, text, len(words), None)

    @functools.cached_property
    def sentences(self) -> Sequence[Sentence]:
        """Its sentences, in order."""
        return sentences(self.turn)

    @functools.cached_property
    def _scans(self) -> Sequence[SentenceScan]:
        """Scans of the first MAX_CUED_SENTENCES sentences."""
        return [SentenceScan(part.text, AGENTS) for part in self.sentences[:MAX_CUED_SENTENCES]]

    @functools.cached_property
    def features(self) -> Features:
        """All features."""
        return {**self._few, **named_ngrams(self._buckets)}

    @functools.cached_property
    def _few(self) -> Features:
        """All features but the words."""
        return {**self._shape.features(), **named_cues(self._scans)}

    def probability(self, head: Weighing) -> float:
        """`Head.probability` of `features`, without a name for each word."""
        return head.probability(self._few, self._buckets)

    def is_beyond(self, head: Weighing) -> bool:
        """Whether `head` cannot reach its threshold, whatever `features` will be. The cheap tests come first."""
        missing = head.limit - head.of_shape(self._shape) - head.of_ngrams(self._buckets) - SURE
        return head.most_by_cues(self.may_show, self.may_show) < missing or show_too_little(self._scans, head, missing)

    def search(self, index: int) -> SentenceScan:
        """Scan of sentence number `index`."""
        return self._scans[index] if index < MAX_CUED_SENTENCES else SentenceScan(self.sentences[index].text, AGENTS)

    def speaks_for(self, head: Weighing, index: int) -> float:
        """Logit that sentence number `index` alone contributes to `head`."""
        words = words_in(self.sentences[index].text)[:MAX_WORDS]
        buckets = {AGENTS.known[word][2] for word in words}
        return head.logit(dict.fromkeys(cues_of(self.search(index), head.cues), 1.0)) + head.of_ngrams(buckets)
